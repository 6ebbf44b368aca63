package share

// Random takes any node with room, and any device with room on it, each equally
// likely. What is drawn comes from outside.
type Random struct {
	Intn func(n int) int
}

// Rate is not asked: all nodes are equal.
func (*Random) Rate(n *Node, r *Request) (int64, int) { return 0, n.tightestDevice(r.Milli) }

func (s *Random) chooseRandom(nodes []Node, r *Request) (node, device int) {
	var all []int
	for i := range nodes {
		if nodes[i].Fits(r) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return -1, -1
	}
	node = all[s.Intn(len(all))]
	if !r.Part() {
		return node, -1
	}
	seen := 0
	for i, l := range nodes[node].Left {
		if l >= r.Milli {
			if seen++; s.Intn(seen) == 0 {
				device = i
			}
		}
	}
	return node, device
}
