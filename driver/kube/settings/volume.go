package settings

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Path is a volume that stands in pods where the paths in scripts look for it.
type Path struct {
	Prefix string // "/home"
	Volume Volume
}

// VolumeKind is the kind of a Volume.
type VolumeKind string

// The kinds of volumes.
const (
	Claim   VolumeKind = "pvc"
	NFS     VolumeKind = "nfs"
	Host    VolumeKind = "hostPath"
	Empty   VolumeKind = "emptyDir"  // of the pod, and gone with it
	Fresh   VolumeKind = "ephemeral" // a claim that is made with the pod, and goes with it
	OfImage VolumeKind = "image"     // no volume: the container images have the directory
)

// Volume is where the files of a path are.
type Volume struct {
	Kind     VolumeKind
	Name     string // of the claim
	Class    string // the storage class of Fresh; empty: the cluster's default
	Server   string // of NFS
	Dir      string // of NFS, or of the node
	Size     int64  // in bytes: of Fresh; of Empty, beyond which the pod is evicted, 0: none
	Memory   bool   // Empty is kept in memory, which counts as the job's
	Sub      string // directory of the volume that is used; empty: all of it
	ReadOnly bool
}

// String is the form in which settings have it: "pvc:home", "nfs:10.0.0.5:/export/home,ro".
func (v Volume) String() string {
	out := string(v.Kind)
	switch v.Kind {
	case Claim:
		out += ":" + v.Name
	case NFS:
		out += ":" + v.Server + ":" + v.Dir
	case Host:
		out += ":" + v.Dir
	case Empty, Fresh:
		if v.Size > 0 {
			out += ":" + quantity.NewQuantity(v.Size, quantity.BinarySI).String()
		}
	}
	if v.Memory {
		out += ",memory"
	}
	if v.Class != "" {
		out += ",class=" + v.Class
	}
	if v.Sub != "" {
		out += ",sub=" + v.Sub
	}
	if v.ReadOnly {
		out += ",ro"
	}
	return out
}

// ParseVolume reads the form in which settings have a volume:
//
//	pvc:NAME
//	nfs:SERVER:/PATH
//	hostPath:/PATH
//	emptyDir or emptyDir:SIZE
//	ephemeral:SIZE
//	image
//
// and behind it, after commas, "ro", "sub=DIRECTORY" of a volume that has directories already,
// "memory" of emptyDir, and "class=STORAGECLASS" of ephemeral. The error is about the text.
func ParseVolume(text string) (Volume, error) {
	head, options, more := strings.Cut(text, ",")
	kind, rest, valued := strings.Cut(head, ":")
	v := Volume{Kind: VolumeKind(kind)}
	ok := false
	switch v.Kind {
	case Claim:
		v.Name, ok = rest, len(validation.IsDNS1123Subdomain(rest)) == 0
	case NFS:
		i := strings.Index(rest, ":/") // an address of IPv6 has colons too
		if ok = i > 0; ok {
			v.Server, v.Dir = rest[:i], rest[i+1:]
		}
	case Host:
		v.Dir, ok = rest, path.IsAbs(rest)
	case Empty, Fresh:
		if ok = !valued && v.Kind == Empty; valued {
			q, err := quantity.ParseQuantity(rest)
			v.Size, ok = q.Value(), err == nil && q.Sign() > 0
			if !ok {
				return v, fault.New(fault.Invalid, "%.100q: %.70q is no size", text, rest).Advise("write %s:20Gi", v.Kind)
			}
		}
	case OfImage:
		ok = !valued && !more
	}
	if !ok || hasParentPart(v.Dir) {
		return v, fault.New(fault.Invalid, "%.100q is no volume", text).
			Advise("write pvc:NAME, nfs:SERVER:/PATH, hostPath:/PATH, emptyDir:SIZE, ephemeral:SIZE or image; and behind it ,ro or ,sub=DIRECTORY")
	}
	if !more {
		return v, nil
	}
	for o := range strings.SplitSeq(options, ",") {
		if err := v.parseOption(o); err != nil {
			return v, fault.New(fault.Invalid, "%.100q: %w", text, err).Advise("%s", fault.Remedy(err))
		}
	}
	return v, nil
}

func (v *Volume) parseOption(o string) error {
	name, value, valued := strings.Cut(o, "=")
	switch {
	case o == "ro" && v.Kind != Empty && v.Kind != Fresh:
		v.ReadOnly = true
	case o == "ro":
		return fault.New(fault.Invalid, "ro: an %s has only what is written to it", v.Kind).Advise("leave it")
	case name == "class" && v.Kind == Fresh && len(validation.IsDNS1123Subdomain(value)) == 0:
		v.Class = value
	case name == "class" && v.Kind == Fresh:
		return fault.New(fault.Invalid, "class: %.100q is no name of a storage class", value).Advise("kubectl get storageclass shows them")
	case o == "memory" && v.Kind == Empty:
		v.Memory = true
	case name == "sub" && v.Kind != Empty && v.Kind != Fresh && value != "" && !path.IsAbs(value) && !hasParentPart(value) && path.Clean(value) == value:
		v.Sub = value
	case name == "sub" && valued && v.Kind != Empty && v.Kind != Fresh:
		return fault.New(fault.Invalid, "sub: %.100q is no directory below the volume's own", value).Advise("write sub=users/ada")
	default:
		return fault.New(fault.Invalid, "%.70q is nothing that %s has", o, v.Kind).Advise("there are ro and sub=DIRECTORY; of emptyDir, memory; of ephemeral, class=STORAGECLASS")
	}
	return nil
}

// hasParentPart reports whether a name leads out of where it begins.
func hasParentPart(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// Source is the volume as a pod's specification has it; that of OfImage is empty.
func (v Volume) Source() corev1.VolumeSource {
	switch v.Kind {
	case Claim:
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Name}}
	case NFS:
		return corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: v.Server, Path: v.Dir}}
	case Host:
		kind := corev1.HostPathDirectory
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: v.Dir, Type: &kind}}
	case Empty:
		e := &corev1.EmptyDirVolumeSource{}
		if v.Size > 0 {
			e.SizeLimit = quantity.NewQuantity(v.Size, quantity.BinarySI)
		}
		if v.Memory {
			e.Medium = corev1.StorageMediumMemory
		}
		return corev1.VolumeSource{EmptyDir: e}
	case Fresh:
		spec := corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *quantity.NewQuantity(v.Size, quantity.BinarySI)}},
		}
		if v.Class != "" {
			spec.StorageClassName = &v.Class
		}
		return corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec}}}
	}
	return corev1.VolumeSource{}
}

// Lasts reports whether what is written to the volume outlives a pod, and pods on other nodes
// can see it.
func (v Volume) Lasts() bool {
	return !v.ReadOnly && (v.Kind == Claim || v.Kind == NFS || v.Kind == Host)
}

// isWithinDir reports whether a file or directory is a directory, or is in it.
func isWithinDir(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// PathOf is the path of the settings with the longest prefix of a directory or file. false:
// no volume has it.
func (t *Terms) PathOf(name string) (Path, bool) {
	var best Path
	for _, p := range t.Paths {
		if isWithinDir(name, p.Prefix) && len(p.Prefix) > len(best.Prefix) {
			best = p
		}
	}
	return best, best.Prefix != ""
}
