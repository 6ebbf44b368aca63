package cluster

// Resources of which objects are read, and some written, beside those of jobs.
var (
	ConfigMaps              = Resource{Version: "v1", Name: "configmaps"}
	ResourceQuotas          = Resource{Version: "v1", Name: "resourcequotas"}
	LimitRanges             = Resource{Version: "v1", Name: "limitranges"}
	PersistentVolumeClaims  = Resource{Version: "v1", Name: "persistentvolumeclaims"}
	PersistentVolumes       = Resource{Version: "v1", Name: "persistentvolumes", Global: true}
	StorageClasses          = Resource{Group: "storage.k8s.io", Version: "v1", Name: "storageclasses", Global: true}
	PriorityClasses         = Resource{Group: "scheduling.k8s.io", Version: "v1", Name: "priorityclasses", Global: true}
	AdmissionPolicies       = Resource{Group: "admissionregistration.k8s.io", Version: "v1", Name: "validatingadmissionpolicies", Global: true}
	AdmissionPolicyBindings = Resource{Group: "admissionregistration.k8s.io", Version: "v1", Name: "validatingadmissionpolicybindings", Global: true}
)

// Resources of which a right is to act as somebody.
var (
	Users           = Resource{Version: "v1", Name: "users", Global: true}
	ServiceAccounts = Resource{Version: "v1", Name: "serviceaccounts"}
)
