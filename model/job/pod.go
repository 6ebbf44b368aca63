package job

// Pod is what a job asks of the pods in which it runs, where its pool makes pods. Engines that
// make none refuse a job that has one. What is empty is as the pool has it.
type Pod struct {
	PerTask        bool              `json:"per_task,omitempty"`      // each task has a pod of its own; false: each node has one
	SharedMemory   int64             `json:"shared_memory,omitempty"` // bytes of /dev/shm, which count as the job's memory
	HostNetwork    bool              `json:"host_network,omitempty"`  // the node's own network
	LockMemory     bool              `json:"lock_memory,omitempty"`   // may lock memory beyond the limit
	ServiceAccount string            `json:"service_account,omitempty"`
	RuntimeClass   string            `json:"runtime_class,omitempty"`
	PriorityClass  string            `json:"priority_class,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Annotations    map[string]string `json:"annotations,omitempty"`
	NodeSelector   map[string]string `json:"node_selector,omitempty"`
	Tolerations    []string          `json:"tolerations,omitempty"` // "KEY" or "KEY=VALUE", ":EFFECT" behind it for that effect alone
}

// PodPerTask reports whether each task of the job is to have a pod of its own: it asks for that, or its pods
// are those of a manifest.
func (s *Spec) PodPerTask() bool { return s.Pod != nil && s.Pod.PerTask || s.Program.Kind == Pods }
