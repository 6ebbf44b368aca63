package share

// The scores below are those that FGD (Weng et al., USENIX ATC 2023, section 6) was
// compared with, in the units in which it compared them: whole points between 0 and
// 100, of a node with at most 128 CPUs and 8 devices.
const (
	points  = 100
	mostCPU = 128_000
	mostGPU = 8 * Whole
)

// BestFit prefers the node on which the least is left, in CPUs and devices alike; a
// part goes to the tightest device.
type BestFit struct{}

// Rate is 100 less half the share of CPU and half the share of devices left.
func (BestFit) Rate(n *Node, r *Request) (int64, int) {
	left := float64(float64(n.CPU-r.CPU)/mostCPU*0.5) + float64(float64(n.Total()-r.Total())/mostGPU*0.5)
	return int64(float64((1 - left) * points)), n.tightestDevice(r.Milli)
}

// DotProduct prefers the node whose vector of what is left, times the request's, is
// smallest (the alignment of Tetris, SIGCOMM 2014, turned round as FGD did).
type DotProduct struct{}

// Rate is 100 less half the product.
func (DotProduct) Rate(n *Node, r *Request) (int64, int) {
	cpu := float64(float64(n.CPU) / mostCPU * (float64(r.CPU) / mostCPU))
	gpu := float64(float64(n.Total()) / mostGPU * (float64(r.Total()) / mostGPU))
	return int64(float64(points * (1 - float64((cpu+gpu)/2)))), n.tightestDevice(r.Milli)
}

// Packing fills devices that are shared already, then nodes that are in use, then
// empty ones (the packing of Gandiva-like schedulers, as FGD states it).
type Packing struct{}

// Rate: on shared devices 100 less a tenth of what is free on them in percent; with
// idle devices of a node in use 50 less their number; of an idle node 33 less its
// devices.
func (Packing) Rate(n *Node, r *Request) (int64, int) {
	device := n.tightestDevice(r.Milli)
	if r.Count == 0 {
		return 0, device
	}
	idle := n.Idle()
	if idle == len(n.Left) {
		return max(int64(points/3-idle), int64(idle)), device
	}
	if !r.Part() {
		return max(int64(points/2-r.Count), points/3), device
	}
	if n.Left[device] == Whole {
		return points/2 - 1, device
	}
	free := int64(n.Left[device]) * 100 / Whole
	return max(points-free/10, points/2), device
}

// Clustering keeps requests of one kind (a part, 1, 2 … devices) together, and among
// equally good nodes packs (the clustering of Gandiva, OSDI 2018, as FGD states it).
type Clustering struct{}

// Rate has a quarter of the points each for: other kinds only, an empty node, this
// kind and others, this kind alone.
func (Clustering) Rate(n *Node, r *Request) (int64, int) {
	device := n.tightestDevice(r.Milli)
	kind := r.kindIndex()
	if kind < 0 {
		return 0, device
	}
	kinds := 0
	for _, c := range n.Kinds {
		if c > 0 {
			kinds++
		}
	}
	packed := int64(points / 4 * (mostGPU - n.Total()) / mostGPU)
	switch {
	case n.Kinds[kind] > 0 && kinds == 1:
		return packed + points*3/4, device
	case n.Kinds[kind] > 0:
		return packed + points*2/4, device
	case kinds == 0:
		return packed + points/4, device
	}
	return packed, device
}
