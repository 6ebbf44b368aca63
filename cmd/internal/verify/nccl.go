package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NCCL is which way NCCL took on one host, by its own output with NCCL_DEBUG=INFO. Its lines differ from
// version to version; what is read is in all of them since 2.3.
type NCCL struct {
	Host    string   `json:"host"`
	Network string   `json:"network"`           // "IB", "Socket", or a plugin's name: "IBext", "AWS Libfabric"
	Devices string   `json:"devices,omitempty"` // of that network: "[0]mlx5_0:1/IB"
	Ways    []string `json:"ways,omitempty"`    // between nodes, of its channels: "NET/IB/0/GDRDMA"
	Why     []string `json:"why,omitempty"`     // lines that may say why InfiniBand is not used
}

// reasons are parts of lines that say why NCCL does not use InfiniBand.
var reasons = []string{"NET/IB : No device found", "NCCL_IB_DISABLE set", "NCCL_NET set", "Failed to open libibverbs", "ibv_modify_qp failed", "NCCL_IB_HCA set"}

// ReadNCCL reads NCCL's lines, by host.
func ReadNCCL(output string) []NCCL {
	all := map[string]*NCCL{}
	nets := map[string]map[string]string{} // by host: the networks that it has begun to use, with their devices
	for line := range strings.Lines(output) {
		head, text, ok := strings.Cut(strings.TrimSpace(line), "NCCL ")
		if !ok {
			continue
		}
		level, text, _ := strings.Cut(text, " ")
		host := ncclHost(head)
		if level != "INFO" && level != "WARN" || host == "" {
			continue
		}
		n := all[host]
		if n == nil {
			n = &NCCL{Host: host}
			all[host], nets[host] = n, map[string]string{}
		}
		n.read(text, nets[host])
	}
	out := []NCCL{}
	for _, host := range slices.Sorted(maps.Keys(all)) {
		n := all[host]
		n.settle(nets[host])
		if n.Network != "" {
			out = append(out, *n)
		}
	}
	return out
}

// ncclHost is the host of what stands before a line's "NCCL": "host:pid:thread [device] ", after what
// others put before it.
func ncclHost(head string) string {
	words := strings.Fields(head)
	if len(words) < 2 || !strings.HasPrefix(words[len(words)-1], "[") {
		return ""
	}
	parts := strings.Split(words[len(words)-2], ":")
	if len(parts) < 3 {
		return ""
	}
	return parts[len(parts)-3]
}

// read takes in one line.
func (n *NCCL) read(text string, nets map[string]string) {
	text = strings.TrimSpace(text)
	for _, r := range reasons {
		if strings.Contains(text, r) && !slices.Contains(n.Why, text) {
			n.Why = append(n.Why, text)
		}
	}
	if name, ok := strings.CutPrefix(text, "Using network "); ok {
		n.Network = strings.TrimSpace(name)
		return
	}
	if name, ok := strings.CutPrefix(text, "Using internal Network "); ok {
		n.Network = strings.TrimSpace(name)
		return
	}
	if _, way, ok := strings.Cut(text, " via "); ok && strings.HasPrefix(way, "NET/") {
		way, _, _ = strings.Cut(way, " ")
		if !slices.Contains(n.Ways, way) {
			n.Ways = append(n.Ways, way)
		}
		return
	}
	for _, kind := range []string{"IB", "Socket"} {
		if rest, ok := strings.CutPrefix(text, "NET/"+kind+" : Using "); ok {
			rest, _, _ = strings.Cut(rest, ";")
			nets[kind] = strings.TrimSpace(rest)
		}
	}
}

// settle decides which network it is: what channels say outranks what NCCL says in a word, and that
// what it says of its devices. Versions before 2.5 name the interface of their first contact as
// NET/Socket, whatever they use after that.
func (n *NCCL) settle(nets map[string]string) {
	for _, way := range n.Ways {
		kind, _, _ := strings.Cut(strings.TrimPrefix(way, "NET/"), "/")
		if n.Network == "" || kind == "Socket" {
			n.Network = kind
		}
	}
	for _, kind := range []string{"IB", "Socket"} {
		if _, ok := nets[kind]; ok && n.Network == "" {
			n.Network = kind
		}
	}
	n.Devices = nets[n.Network]
}

// checkNCCL: NCCL goes over InfiniBand where the nodes have it. No What: NCCL has said nothing.
func checkNCCL(o *Order, ranks []Rank, all []NCCL) Check {
	c := Check{What: "NCCL"}
	if len(all) == 0 {
		if o.NCCL == "" {
			return Check{}
		}
		c.Text, c.Mend = "the command of --nccl printed nothing of NCCL's", "does it use NCCL, and more than one node? cox logs of the job has what it said"
		return c
	}
	active := ""
	for i := range ranks {
		for _, p := range ranks[i].Ports {
			if strings.HasSuffix(p, ":ACTIVE") && active == "" {
				active = strings.TrimSuffix(p, ":ACTIVE") + " on " + ranks[i].Node + " is active"
			}
		}
	}
	var socket, others []string
	var why []string
	for i := range all {
		n := &all[i]
		text := n.Host + " by " + n.Network
		if n.Devices != "" {
			text += " (" + n.Devices + ")"
		}
		if slices.ContainsFunc(n.Ways, func(w string) bool { return strings.HasSuffix(w, "GDRDMA") }) {
			text += " with GPUDirect RDMA"
		}
		if n.Network == "Socket" {
			socket = append(socket, text)
			for _, w := range n.Why {
				if !slices.Contains(why, w) {
					why = append(why, w)
				}
			}
			continue
		}
		others = append(others, text)
		if active == "" {
			active = n.Host + " uses " + n.Network
		}
	}
	switch {
	case len(socket) == 0:
		c.OK, c.Text = true, strings.Join(others, ", ")
	case active == "":
		c.OK, c.Text = true, strings.Join(socket, ", ")+"; no node has an active port of InfiniBand"
	default:
		c.Text = fmt.Sprintf("falls back to sockets: %s, although %s", strings.Join(socket, ", "), active)
		if len(why) > 0 {
			c.Text += "; it says: " + strings.Join(why, "; ")
		}
		c.Mend = "NCCL_IB_DISABLE and NCCL_NET unset? libibverbs in the image? /dev/infiniband in the container? ulimit -l unlimited? NCCL_IB_HCA as the node has it?"
	}
	return c
}
