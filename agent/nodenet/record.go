package nodenet

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/proc"
)

// record is what is known of a network, in a file of its own.
type record struct {
	Number    int        `json:"number"`   // N of the names coxN
	Identity  string     `json:"identity"` // of the engine's root
	Root      string     `json:"root"`     // the engine's directory
	Subnet    string     `json:"subnet"`
	Temporary bool       `json:"temporary,omitempty"` // nobody opens the root again when Owner has ended
	Owner     owner      `json:"owner"`               // the process that opened the network last
	Nodes     []nodeLink `json:"nodes"`
	Forwarded []string   `json:"forwarded,omitempty"` // interfaces whose forwarding was off before
	Out       string     `json:"out,omitempty"`       // interface of the way out; empty: there is none
	Rules     bool       `json:"rules,omitempty"`     // iptables has rules
	Hosts     bool       `json:"hosts,omitempty"`     // /etc/hosts has a block
	Fenced    bool       `json:"fenced,omitempty"`    // iptables has a chain for ports (Fence)
}

type owner struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// nodeLink is a node's part of a network.
type nodeLink struct {
	Name    string `json:"name"`
	Index   int    `json:"index"` // its address is the subnet's, plus 1, plus Index
	Address string `json:"address"`
}

func (r *record) networkID() string  { return fmt.Sprintf("cox%d", r.Number) }
func (r *record) bridgeName() string { return r.networkID() }

// vethName is the machine's end of a node's interface.
func (r *record) vethName(n nodeLink) string { return fmt.Sprintf("%s.%d", r.networkID(), n.Index) }

// namespacePrefix is where the namespace of a node is, without the node's name.
func (r *record) namespacePrefix() string { return filepath.Join(namespaces, r.networkID()+"-") }

// parseSubnet is the record's subnet; an invalid one if the record is damaged.
func (r *record) parseSubnet() netip.Prefix {
	p, _ := netip.ParsePrefix(r.Subnet)
	return p
}

// addressAt is the address with a number inside the subnet.
func (r *record) addressAt(i int) netip.Addr {
	a := r.parseSubnet().Addr()
	for range i {
		a = a.Next()
	}
	return a
}

// isAbandoned reports whether nobody will open the network again.
func (r *record) isAbandoned() bool {
	if r.Temporary && !proc.Alive(r.Owner.PID, r.Owner.Start) {
		return true
	}
	id, err := attempt.ReadIdentity(r.Root)
	return err == nil && id != r.Identity
}

const (
	registry   = "/run/coxswain-net"
	namespaces = "/run/netns"
)

// lockRegistry makes the folder of records and takes its lock, until unlock is called.
func lockRegistry() (unlock func(), err error) {
	if err := os.MkdirAll(registry, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(registry, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", registry, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func recordName(number int) string { return filepath.Join(registry, fmt.Sprintf("cox%d.json", number)) }

// readRecords reads every record. One that cannot be read is not there for us: its number stays
// taken by its bridge.
func readRecords() ([]*record, error) {
	names, err := filepath.Glob(filepath.Join(registry, "cox*.json"))
	if err != nil {
		return nil, err
	}
	var out []*record
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		r := &record{}
		if json.Unmarshal(b, r) == nil && r.parseSubnet().IsValid() && recordName(r.Number) == name {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *record) int { return a.Number - b.Number })
	return out, nil
}

// saveRecord writes the record whole or not at all.
func (r *record) saveRecord() error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	name := recordName(r.Number)
	if err := os.WriteFile(name+".new", append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// thisProcess is the caller as the owner of a record.
func thisProcess() owner {
	o := owner{PID: os.Getpid()}
	if st, err := proc.Read(o.PID); err == nil {
		o.Start = st.Start
	}
	return o
}

// nodeOf is the part of a node, or a new one with the lowest free number.
func (r *record) nodeOf(name string) (n nodeLink, isNew bool) {
	used := map[int]bool{}
	for _, n := range r.Nodes {
		if n.Name == name {
			return n, false
		}
		used[n.Index] = true
	}
	i := 1
	for used[i] {
		i++
	}
	return nodeLink{Name: name, Index: i, Address: r.addressAt(1 + i).String()}, true
}

// isNodeName reports whether a name can be part of the name of a file.
func isNodeName(name string) bool {
	return name != "" && !strings.ContainsAny(name, "/\x00") && len(name) < 200
}
