package series

// ExportedGPU is a GPU, or an instance of one, as an exporter describes it.
type ExportedGPU struct {
	UUID      string // of the GPU
	Instance  string // number of the MIG instance; empty: it is the whole GPU
	Profile   string // of the MIG instance
	Index     int    // of the GPU on its node; -1: not known
	Node      string // as the exporter calls it
	Namespace string // of the pod that holds it
	Pod       string // that holds it; empty: none, or the exporter does not know
	Busy      float64
	Used, Of  int64
}
