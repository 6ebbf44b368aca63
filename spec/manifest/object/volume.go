package object

// Volume is a volume of a pod. One of its sources is not nil; Source names it whatever it is.
type Volume struct {
	At
	Name                  string       `json:"name"`
	EmptyDir              *EmptyDir    `json:"emptyDir"`
	HostPath              *HostPath    `json:"hostPath"`
	ConfigMap             *FileSource  `json:"configMap"`
	Secret                *FileSource  `json:"secret"`
	Projected             *Projected   `json:"projected"`
	DownwardAPI           *DownwardAPI `json:"downwardAPI"`
	PersistentVolumeClaim *ClaimVolume `json:"persistentVolumeClaim"`
	CSI                   *CSI         `json:"csi"`
	NFS                   *NFS         `json:"nfs"`
	Image                 *ImageVolume `json:"image"`
}

// Source is the name of the field that says what the volume is: "emptyDir". Empty: a volume
// without one, which is an empty folder.
func (v *Volume) Source() string {
	if v.Node == nil {
		return ""
	}
	for _, f := range v.Node.Fields {
		if f.Name != "name" && v.Has(f.Name) {
			return f.Name
		}
	}
	return ""
}

// EmptyDir is an empty folder that goes with the pod.
type EmptyDir struct {
	At
	Medium    string   `json:"medium"` // Memory, HugePages…; empty: the disk
	SizeLimit Quantity `json:"sizeLimit"`
	Mode      *int32   `json:"mode"`
}

// HostPath is a file or folder of the node.
type HostPath struct {
	At
	Path string `json:"path"`
	Type string `json:"type"` // DirectoryOrCreate, Directory, FileOrCreate, File, Socket, CharDevice, BlockDevice; empty: not checked
}

// FileSource are keys of a ConfigMap or of a Secret as files. In a volume the Secret is named by
// SecretName, elsewhere by Name.
type FileSource struct {
	At
	Name        string      `json:"name"`
	SecretName  string      `json:"secretName"`
	Items       []KeyToPath `json:"items"`
	DefaultMode *int32      `json:"defaultMode"`
	Optional    bool        `json:"optional"`
}

// KeyToPath puts a key into a file.
type KeyToPath struct {
	At
	Key  string `json:"key"`
	Path string `json:"path"`
	Mode *int32 `json:"mode"`
}

// Projected are several sources in one folder.
type Projected struct {
	At
	Sources     []Projection `json:"sources"`
	DefaultMode *int32       `json:"defaultMode"`
}

// Projection is one source of a projected volume.
type Projection struct {
	At
	ConfigMap           *FileSource   `json:"configMap"`
	Secret              *FileSource   `json:"secret"`
	DownwardAPI         *DownwardAPI  `json:"downwardAPI"`
	ServiceAccountToken *AccountToken `json:"serviceAccountToken"`
}

// AccountToken is a token of the pod's service account.
type AccountToken struct {
	At
	Audience string `json:"audience"`
	Path     string `json:"path"`
}

// DownwardAPI are facts about the pod as files.
type DownwardAPI struct {
	At
	Items       []DownwardFile `json:"items"`
	DefaultMode *int32         `json:"defaultMode"`
}

// DownwardFile is one fact about the pod as a file.
type DownwardFile struct {
	At
	Path             string            `json:"path"`
	FieldRef         *FieldRef         `json:"fieldRef"`
	ResourceFieldRef *ResourceFieldRef `json:"resourceFieldRef"`
	Mode             *int32            `json:"mode"`
}

// ClaimVolume is a volume by a PersistentVolumeClaim.
type ClaimVolume struct {
	At
	ClaimName string `json:"claimName"`
	ReadOnly  bool   `json:"readOnly"`
}

// CSI is a volume of a driver.
type CSI struct {
	At
	Driver               string            `json:"driver"`
	ReadOnly             bool              `json:"readOnly"`
	VolumeAttributes     map[string]string `json:"volumeAttributes"`
	NodePublishSecretRef *LocalReference   `json:"nodePublishSecretRef"`
}

// NFS is a folder of a file server.
type NFS struct {
	At
	Server   string `json:"server"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"readOnly"`
}

// ImageVolume are the files of an image.
type ImageVolume struct {
	At
	Reference string `json:"reference"`
}

// VolumeMount is where a container has a volume.
type VolumeMount struct {
	At
	Name             string `json:"name"`
	MountPath        string `json:"mountPath"`
	SubPath          string `json:"subPath"`
	SubPathExpr      string `json:"subPathExpr"`
	ReadOnly         bool   `json:"readOnly"`
	MountPropagation string `json:"mountPropagation"`
}

// VolumeDevice is where a container has a block device.
type VolumeDevice struct {
	At
	Name       string `json:"name"`
	DevicePath string `json:"devicePath"`
}
