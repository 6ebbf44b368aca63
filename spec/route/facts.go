package route

import (
	"fmt"
	"strconv"
	"strings"
)

// Key names a fact about work.
type Key string

// The facts. All but Nodes are yes or no.
const (
	Nodes            Key = "nodes"                  // how many machines it needs, at least
	TightlyCoupled   Key = "tightly_coupled"        // its tasks talk to each other all the time
	BareMetal        Key = "bare_metal"             // it runs on the machine's own software and network
	LongLivedService Key = "long_lived_services"    // part of it serves requests until it is stopped
	MultiTenant      Key = "multi_tenant"           // several teams share the place where it runs
	PythonPipeline   Key = "python_native_pipeline" // its parts are Python functions and actors
	EdgeOrDev        Key = "edge_or_dev"            // it runs on a small or remote cluster
	Containers       Key = "containers"             // it runs in containers
)

// keyInfo says how a fact is shown.
type keyInfo struct {
	key     Key
	yes     string // what is said of it if it holds
	meaning string
}

// keys are all facts in the order in which they are shown.
var keys = []keyInfo{
	{Nodes, "", "least number of machines that it needs"},
	{TightlyCoupled, "coupled", "its tasks communicate all the time (MPI, NCCL)"},
	{BareMetal, "bare metal", "it needs the machines' own software and network, not containers"},
	{LongLivedService, "long-lived services", "part of it serves requests until it is stopped"},
	{MultiTenant, "several tenants", "several teams share the place where it runs"},
	{PythonPipeline, "python-native pipeline", "its parts are Python functions and actors (Ray)"},
	{EdgeOrDev, "edge or development", "it runs on a small or remote cluster"},
	{Containers, "containers", "it runs in containers"},
}

// Keys returns all facts in the order in which they are shown.
func Keys() []Key {
	out := make([]Key, len(keys))
	for i, k := range keys {
		out[i] = k.key
	}
	return out
}

// FlagName is the command-line flag that states a fact: "--tightly-coupled".
func FlagName(k Key) string { return "--" + strings.ReplaceAll(string(k), "_", "-") }

// Meaning says in a phrase what a fact means.
func Meaning(k Key) string { return keyInfoOf(k).meaning }

func keyInfoOf(k Key) keyInfo {
	for _, i := range keys {
		if i.key == k {
			return i
		}
	}
	return keyInfo{key: k, yes: string(k)}
}

// Origin says who stated a fact. A later one outranks an earlier one.
type Origin uint8

// The origins.
const (
	Assumed   Origin = iota // nobody: the fact is taken as no, nodes as 1
	Inventory               // what is known of the pools that are configured
	File                    // a line of the file
	Flag                    // the caller
)

var originNames = [...]string{"assumed", "inventory", "file", "flag"}

// String is the origin's name.
func (o Origin) String() string { return originNames[o] }

// MarshalText is the origin's name.
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Evidence is what shows a fact.
type Evidence struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // from 1; 0: no line
	Text string `json:"text"`           // of the line, or what was said
	Says string `json:"says"`           // what it was recognised as
}

// Fact is one fact and what shows it.
type Fact struct {
	Key      Key        `json:"key"`
	Value    int        `json:"value"` // Nodes: the number; the others: 1 for yes, 0 for no
	Origin   Origin     `json:"origin"`
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Yes reports whether the fact holds; of Nodes, whether there are several.
func (f Fact) Yes() bool {
	if f.Key == Nodes {
		return f.Value > 1
	}
	return f.Value != 0
}

// String is the fact as it is shown: "4 nodes", "coupled", "not coupled".
func (f Fact) String() string {
	switch {
	case f.Key == Nodes && f.Value == 1:
		return "1 node"
	case f.Key == Nodes:
		return strconv.Itoa(f.Value) + " nodes"
	case f.Value == 0:
		return "not " + keyInfoOf(f.Key).yes
	}
	return keyInfoOf(f.Key).yes
}

// maxEvidence bounds the lines that are kept for a fact.
const maxEvidence = 4

// Facts is what is known of some work. The zero value knows nothing.
type Facts struct {
	m         map[Key]Fact
	launchers []launcher // in the order in which they were found
	steps     []Evidence // lines that start tasks on all nodes
	needs     []Need     // what it takes from the machines, in the order in which it was found
	kept      bool       // it is written as a service, which is kept alive
	imaged    bool       // the job itself names its image, or says what its pods are
	tuned     []Evidence // settings of NCCL, which show coupled tasks unless Ray uses it
}

// launcher is a program that makes the work's runtime what it is.
type launcher struct {
	runtime  Runtime
	evidence Evidence
}

// Get returns a fact; what nobody stated is Assumed: no, and one node.
func (f *Facts) Get(k Key) Fact {
	if fact, ok := f.m[k]; ok {
		return fact
	}
	fact := Fact{Key: k}
	if k == Nodes {
		fact.Value = 1
	}
	return fact
}

// Set states a fact. One of a lower origin does not change it; one of the same
// origin and value adds its evidence; a larger number of nodes replaces a smaller.
func (f *Facts) Set(k Key, value int, o Origin, e ...Evidence) {
	if f.m == nil {
		f.m = map[Key]Fact{}
	}
	old, known := f.m[k]
	switch {
	case known && o < old.Origin:
		return
	case known && o == old.Origin && value == old.Value:
		for _, one := range e {
			if len(old.Evidence) < maxEvidence && !sameLine(old.Evidence, one) {
				old.Evidence = append(old.Evidence, one)
			}
		}
		f.m[k] = old
		return
	case known && o == old.Origin && value < old.Value && o != Flag:
		return
	}
	f.m[k] = Fact{Key: k, Value: value, Origin: o, Evidence: e}
}

func sameLine(list []Evidence, e Evidence) bool {
	for _, x := range list {
		if x.File == e.File && x.Line == e.Line {
			return true
		}
	}
	return false
}

// Override states a fact by a flag, such as "--tightly-coupled".
func (f *Facts) Override(k Key, value int, flag string) {
	f.Set(k, value, Flag, Evidence{Text: flag, Says: "said on the command line"})
}

// All returns every fact, stated or not, in the order in which they are shown.
func (f *Facts) All() []Fact {
	out := make([]Fact, len(keys))
	for i, k := range keys {
		out[i] = f.Get(k.key)
	}
	return out
}

// Tenants states from the inventory how many accounts share a pool.
func (f *Facts) Tenants(pool string, accounts int) {
	if accounts > 1 {
		f.Set(MultiTenant, 1, Inventory, Evidence{Text: fmt.Sprintf("pool %q has %d accounts", pool, accounts), Says: "accounts that share a pool"})
	}
}

// startsRuntime reports whether some line starts the runtime.
func (f *Facts) startsRuntime(r Runtime) bool {
	for _, l := range f.launchers {
		if l.runtime == r {
			return true
		}
	}
	return false
}
