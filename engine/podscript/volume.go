package podscript

import (
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// podDir stands in the source of a mount for the directory of the pod on its node.
const podDir = "/\x01"

// file is one that is written for a pod.
type file struct {
	name string // below the pod's directory
	mode int32
	text value  // what is in it
	data []byte // or this, byte by byte
	from int    // or the secret of this number; -1: none
}

// volume is what a role's pods have on their node.
type volume struct {
	files []file
	dirs  []string // below the pod's directory, that everybody may write
	host  []string // commands that make a path of the node
}

const defaultMode = 0o644

func modeOf(modes ...*int32) int32 {
	for _, m := range modes {
		if m != nil {
			return *m
		}
	}
	return defaultMode
}

// source is where a volume is on the node.
func (r *role) source(v *podspec.Volume) string {
	if v.HostPath != nil {
		return v.HostPath.Path
	}
	return podDir + "/v/" + v.Name
}

// addVolume adds what has to be made on the node for a volume.
func (r *role) addVolume(v *podspec.Volume, at string) error {
	dir := "v/" + v.Name
	if v.Name == "" || strings.Trim(v.Name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || strings.HasPrefix(v.Name, ".") {
		return refuseField(at+".name", "use lower case letters, digits and hyphens", "%q is no name of a volume", v.Name)
	}
	switch {
	case v.EmptyDir != nil:
		return r.addEmptyDir(v, dir, at)
	case v.HostPath != nil:
		return r.addHostPath(v.HostPath, at+".hostPath")
	case v.ConfigMap != nil:
		m := r.configMap(v.ConfigMap.Name)
		r.made.dirs = append(r.made.dirs, dir)
		if m == nil {
			return refuseAbsent(v.ConfigMap.Optional, at+".configMap", "ConfigMap", v.ConfigMap.Name)
		}
		return r.addConfigFiles(dir, m, v.ConfigMap.Items, v.ConfigMap.Mode, v.ConfigMap.Optional, at+".configMap")
	case v.Secret != nil:
		r.made.dirs = append(r.made.dirs, dir)
		return r.addSecretFiles(dir, v.Secret.Name, v.Secret.Items, v.Secret.Mode, v.Secret.Optional, at+".secret")
	case v.Downward != nil:
		r.made.dirs = append(r.made.dirs, dir)
		return r.addDownward(dir, v.Downward.Items, v.Downward.Mode, at+".downwardAPI")
	case v.Projected != nil:
		r.made.dirs = append(r.made.dirs, dir)
		return r.addProjected(dir, v.Projected, at+".projected")
	}
	return refuseField(at, "use emptyDir, hostPath, configMap, secret, projected or downwardAPI, or name a pool of Kubernetes", "the volume %s is of a type that only Kubernetes has", v.Name)
}

func (r *role) addEmptyDir(v *podspec.Volume, dir, at string) error {
	switch v.EmptyDir.Medium {
	case "":
		r.made.dirs = append(r.made.dirs, dir)
	case "Memory":
		r.made.host = append(r.made.host, `open_in_memory "$_cox_pod/`+dir+`"`)
	default:
		return refuseField(at+".emptyDir.medium", "leave it out, or write Memory", "%q is no medium that nodes have outside of Kubernetes", v.EmptyDir.Medium)
	}
	if v.EmptyDir.Limit != "" {
		if _, err := parseQuantity(string(v.EmptyDir.Limit)); err != nil {
			return refuseField(at+".emptyDir.sizeLimit", "correct the amount", "%v", err)
		}
	}
	return nil
}

func (r *role) addHostPath(h *podspec.HostPath, at string) error {
	if !path.IsAbs(h.Path) || hasControl(h.Path) || path.Clean(h.Path) != strings.TrimSuffix(h.Path, "/") && h.Path != "/" {
		return refuseField(at+".path", "write an absolute path without dots", "%q is no path of the node", h.Path)
	}
	word := quoteWord(h.Path)
	switch h.Type {
	case "":
	case "DirectoryOrCreate":
		r.made.host = append(r.made.host, "mkdir -p "+word)
	case "FileOrCreate":
		r.made.host = append(r.made.host, "[ -e "+word+" ] || : >"+word)
	case "Directory", "File", "Socket", "CharDevice", "BlockDevice":
		test := map[string]string{"Directory": "-d", "File": "-f", "Socket": "-S", "CharDevice": "-c", "BlockDevice": "-b"}[h.Type]
		r.made.host = append(r.made.host, "[ "+test+" "+word+" ] || { echo "+quoteWord(fmt.Sprintf("hostPath %s is no %s", h.Path, h.Type))+` "on $SLURMD_NODENAME" >&2; exit 1; }`)
	default:
		return refuseField(at+".type", "leave it out, or write Directory or DirectoryOrCreate", "%q is no type of a hostPath", h.Type)
	}
	return nil
}

// pickKeys are the keys that a volume shows, with their relative names.
func pickKeys(keys []string, items []podspec.KeyPath, optional bool, what, at string) ([]podspec.KeyPath, error) {
	if len(items) == 0 {
		var all []podspec.KeyPath
		for _, key := range keys {
			if !isInside(key) {
				return nil, refuseField(at, "correct the key, or list items with a path", "the key %q of %s is no path inside the volume", key, what)
			}
			all = append(all, podspec.KeyPath{Key: key, Path: key})
		}
		return all, nil
	}
	var out []podspec.KeyPath
	for i, item := range items {
		switch {
		case !isInside(item.Path):
			return nil, refuseField(fmt.Sprintf("%s.items[%d].path", at, i), "write a relative path without ..", "%q is no path inside the volume", item.Path)
		case slices.Contains(keys, item.Key):
			out = append(out, item)
		case !optional:
			return nil, refuseField(fmt.Sprintf("%s.items[%d].key", at, i), "correct the key", "%s has no key %q", what, item.Key)
		}
	}
	return out, nil
}

// isInside reports whether a relative path stays in its directory.
func isInside(name string) bool {
	return name != "" && !hasControl(name) && !path.IsAbs(name) && path.Clean(name) == name && name != ".." && !strings.HasPrefix(name, "../")
}

func (r *role) addConfigFiles(dir string, m *podspec.ConfigMap, items []podspec.KeyPath, mode *int32, optional bool, at string) error {
	keys := slices.Sorted(maps.Keys(m.Data))
	keys = append(keys, slices.Sorted(maps.Keys(m.Binary))...)
	chosen, err := pickKeys(keys, items, optional, "the ConfigMap "+m.Name, at)
	if err != nil {
		return err
	}
	for _, item := range chosen {
		data, binary := m.Binary[item.Key]
		if !binary {
			data = []byte(m.Data[item.Key])
		}
		r.made.files = append(r.made.files, file{name: dir + "/" + item.Path, mode: modeOf(item.Mode, mode), data: data, from: -1})
	}
	return nil
}

func (r *role) addSecretFiles(dir, name string, items []podspec.KeyPath, mode *int32, optional bool, at string) error {
	keys, known, err := r.secretKeys(name, len(items) == 0, optional, at)
	if err != nil || !known {
		return err
	}
	chosen, err := pickKeys(keys, items, optional, "the Secret "+name, at)
	if err != nil {
		return err
	}
	for _, item := range chosen {
		n, err := r.secrets.secretNumber(name, item.Key)
		if err != nil && optional {
			continue
		}
		if err != nil {
			_, _, err = r.secretValue(name, item.Key, false, at)
			return err
		}
		r.secrets.used[n].file = true
		r.made.files = append(r.made.files, file{name: dir + "/" + item.Path, mode: modeOf(item.Mode, mode), from: n})
	}
	return nil
}

func (r *role) addDownward(dir string, items []podspec.DownwardItem, mode *int32, at string) error {
	for i := range items {
		item := &items[i]
		here := fmt.Sprintf("%s.items[%d]", at, i)
		if !isInside(item.Path) {
			return refuseField(here+".path", "write a relative path without ..", "%q is no path inside the volume", item.Path)
		}
		v, err := r.downwardValue(item, here)
		if err != nil {
			return err
		}
		r.made.files = append(r.made.files, file{name: dir + "/" + item.Path, mode: modeOf(mode), text: v, from: -1})
	}
	return nil
}

func (r *role) downwardValue(item *podspec.DownwardItem, at string) (value, error) {
	switch {
	case item.Resource != nil:
		return r.resourceValue(&r.pod.Spec.Containers[0], item.Resource, at+".resourceFieldRef")
	case item.Field == nil:
		return nil, refuseField(at, "write fieldRef or resourceFieldRef", "it does not say what is in the file")
	case item.Field.Path == "metadata.labels":
		return r.allMetadata(r.pod.Metadata.Labels, r.role.Labels), nil
	case item.Field.Path == "metadata.annotations":
		return r.allMetadata(r.pod.Metadata.Annotations, r.role.Annotations), nil
	}
	return r.fieldValue(item.Field.Path, at+".fieldRef.fieldPath")
}

// allMetadata are all labels or annotations, a line for each: KEY="VALUE".
func (r *role) allMetadata(own, added map[string]string) value {
	all := maps.Clone(added)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, own)
	var out value
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, literalText(key+`="`)...)
		for _, p := range r.labelValue(added, own, key) {
			p.text = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(p.text)
			out = append(out, p)
		}
		out = append(out, literalText("\"\n")...)
	}
	return out
}

func (r *role) addProjected(dir string, p *podspec.Projected, at string) error {
	for i := range p.Sources {
		s := &p.Sources[i]
		here := fmt.Sprintf("%s.sources[%d]", at, i)
		var err error
		switch {
		case s.ConfigMap != nil:
			if m := r.configMap(s.ConfigMap.Name); m != nil {
				err = r.addConfigFiles(dir, m, s.ConfigMap.Items, p.Mode, s.ConfigMap.Optional, here+".configMap")
			} else {
				err = refuseAbsent(s.ConfigMap.Optional, here+".configMap", "ConfigMap", s.ConfigMap.Name)
			}
		case s.Secret != nil:
			err = r.addSecretFiles(dir, s.Secret.Name, s.Secret.Items, p.Mode, s.Secret.Optional, here+".secret")
		case s.Downward != nil:
			mode := p.Mode
			if s.Downward.Mode != nil {
				mode = s.Downward.Mode
			}
			err = r.addDownward(dir, s.Downward.Items, mode, here+".downwardAPI")
		default:
			err = refuseField(here, "use configMap, secret or downwardAPI, or name a pool of Kubernetes", "the source is of a type that only Kubernetes has")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// containerMounts are the mounts of a container.
func (r *role) containerMounts(c *podspec.Container, at string) ([]job.Mount, error) {
	out := []job.Mount{{Source: podDir + "/hosts", Target: "/etc/hosts", Flags: []string{"ro"}}}
	for i := range c.Mounts {
		m := &c.Mounts[i]
		here := fmt.Sprintf("%s.volumeMounts[%d]", at, i)
		n := slices.IndexFunc(r.pod.Spec.Volumes, func(v podspec.Volume) bool { return v.Name == m.Name })
		switch {
		case n < 0:
			return nil, refuseField(here+".name", "add it to volumes, or correct the name", "the pod has no volume %q", m.Name)
		case !path.IsAbs(m.MountPath) || hasControl(m.MountPath) || strings.ContainsAny(m.MountPath, ",: \t\n"):
			return nil, refuseField(here+".mountPath", "write an absolute path without commas, colons and blanks", "%q is no place where a volume can be mounted here", m.MountPath)
		case m.SubPath != "" && (!isInside(m.SubPath) || strings.ContainsAny(m.SubPath, ",: \t\n")):
			return nil, refuseField(here+".subPath", "write a relative path without .., commas, colons and blanks", "%q is no path inside the volume", m.SubPath)
		}
		v := &r.pod.Spec.Volumes[n]
		if path.Clean(m.MountPath) == "/dev/shm" && v.EmptyDir != nil && v.EmptyDir.Medium == "Memory" {
			continue // a container has that of its node, which is in memory
		}
		mount := job.Mount{Source: r.source(v), Target: path.Clean(m.MountPath), Flags: []string{"rw"}}
		if m.ReadOnly || v.EmptyDir == nil && v.HostPath == nil {
			mount.Flags = []string{"ro"}
		}
		if m.SubPath != "" {
			mount.Source += "/" + m.SubPath
			if v.EmptyDir != nil {
				r.made.addDir("v/" + v.Name + "/" + m.SubPath)
			}
		}
		if strings.ContainsAny(mount.Source, ",: \t\n") {
			return nil, refuseField(here, "name it without them, for example by a symbolic link", "%q: the source of a mount has no commas, colons and blanks", mount.Source)
		}
		out = append(out, mount)
	}
	for n, name := range slices.Sorted(maps.Keys(r.role.Files)) {
		out = append(out, job.Mount{Source: fmt.Sprintf("%s/f/%d", podDir, n), Target: path.Clean(name), Flags: []string{"ro"}})
	}
	return out, nil
}

func (v *volume) addDir(name string) {
	if !slices.Contains(v.dirs, name) {
		v.dirs = append(v.dirs, name)
	}
}

// addOperatorFiles adds Role.Files.
func (r *role) addOperatorFiles() error {
	for n, name := range slices.Sorted(maps.Keys(r.role.Files)) {
		if !path.IsAbs(name) || hasControl(name) || strings.ContainsAny(name, ",: ") {
			return fmt.Errorf("role %s: files: %q is no place for a file", r.role.Name, name)
		}
		r.made.files = append(r.made.files, file{name: fmt.Sprintf("f/%d", n), mode: defaultMode, text: r.operatorValue(r.role.Files[name]), from: -1})
	}
	return nil
}

// prepareScript is the commands of a shell that make a pod's files: $_cox_pod is its directory.
func (v *volume) prepareScript() string {
	var b strings.Builder
	for _, d := range v.dirs {
		b.WriteString("\topen_dir \"$_cox_pod/\"" + quoteWord(d) + "\n")
	}
	for _, h := range v.host {
		b.WriteString("\t" + h + " || exit\n")
	}
	for i := range v.files {
		f := &v.files[i]
		if dir := path.Dir(f.name); !slices.Contains(v.dirs, dir) {
			b.WriteString("\topen_dir \"$_cox_pod/\"" + quoteWord(dir) + "\n")
		}
		to := "\"$_cox_pod/\"" + quoteWord(f.name)
		switch {
		case f.data == nil && f.from >= 0:
			fmt.Fprintf(&b, "\tsecret_%d >%s || exit\n", f.from, to)
		case f.data != nil && (!utf8.Valid(f.data) || slices.Contains(f.data, 0)):
			b.WriteString("\tbase64 -d >" + to + " <<'COX_END' || exit\n" + base64Lines(f.data) + "COX_END\n")
		case f.data != nil:
			b.WriteString("\tprintf %s " + quoteWord(string(f.data)) + " >" + to + " || exit\n")
		default:
			b.WriteString("\tprintf %s " + f.text.shellWord() + " >" + to + " || exit\n")
		}
		fmt.Fprintf(&b, "\tchmod %o %s\n", f.mode&0o777, to)
	}
	return b.String()
}

func base64Lines(data []byte) string {
	text := base64.StdEncoding.EncodeToString(data)
	var b strings.Builder
	for len(text) > 76 {
		b.WriteString(text[:76] + "\n")
		text = text[76:]
	}
	return b.String() + text + "\n"
}
