package job

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Part says which part of a controller's work a job is. While a job with a Part lives, a submission of
// the same Part is answered with that job.
type Part struct {
	Controller string `json:"controller"` // name of the controller, see Spec of model/service: "service/team/chat"
	Revision   uint32 `json:"revision"`   // of the controller's specification, from 1
	Index      uint32 `json:"index"`      // of the replica, from 0
	Try        uint32 `json:"try"`        // grows by one each time that the program of the replica is begun anew after an end, from 0
}

// Serve says what a job offers over the network. The first task of the job (rank 0) serves; the
// other tasks of a gang may talk to it by any port they like.
type Serve struct {
	Ports []Port `json:"ports"` // at least one; the first is also $PORT

	// Each may be nil. Without Readiness a replica is ready when its first port takes connections.
	Startup   *Probe `json:"startup,omitempty"`   // until it passed once, no other probe runs
	Readiness *Probe `json:"readiness,omitempty"` // while it passes, the replica gets traffic
	Liveness  *Probe `json:"liveness,omitempty"`  // when it fails, the program is ended as if it had crashed

	// Drain is the longest time between the record that asks for the job's end, with which its
	// endpoints leave the gateway, and the first signal to its processes. 0: none.
	Drain time.Duration `json:"drain,omitempty"`

	Log LogRotation `json:"log,omitzero"` // of its output files, on the engines of this machine
}

// LogRotation bounds the output files of a job that serves.
type LogRotation struct {
	Size int64 `json:"size,omitempty"` // in bytes, from which a file is rotated; 0: LogSize
	Keep int   `json:"keep,omitempty"` // rotated files that are kept; 0: LogKeep
}

// What a LogRotation has where nothing is said.
const (
	LogSize = 64 << 20
	LogKeep = 4
)

// Port is a port that the first task of a job listens on.
type Port struct {
	Name   string `json:"name"`             // lower case letters, digits and hyphens; $PORT_NAME in the task
	Number int    `json:"number,omitempty"` // 0: chosen at launch, free on the node
}

// Probe is how one sees that a replica is well. Exactly one of HTTP, TCP and Exec is given.
type Probe struct {
	HTTP string   `json:"http,omitempty"` // path of a GET; any status from 200 to 399 passes
	TCP  bool     `json:"tcp,omitempty"`  // the port takes a connection
	Exec []string `json:"exec,omitempty"` // a command in the task's environment; exit code 0 passes
	Port string   `json:"port,omitempty"` // name of one of Serve.Ports, for HTTP and TCP; empty: the first

	Delay    time.Duration `json:"delay,omitempty"`    // before the first look, from the start of the task
	Every    time.Duration `json:"every,omitempty"`    // from one look to the next; 0: ProbeEvery
	Timeout  time.Duration `json:"timeout,omitempty"`  // of one look; 0: ProbeTimeout
	Failures int           `json:"failures,omitempty"` // in a row, until it counts as failed; 0: ProbeFailures
	Passes   int           `json:"passes,omitempty"`   // in a row, until it counts as passed; 0: 1
}

// What a Probe has where nothing is said. They are Kubernetes' values but for ProbeEvery, which is 10 s there.
const (
	ProbeEvery    = time.Second
	ProbeTimeout  = time.Second
	ProbeFailures = 3
)

// Endless reports whether a job serves and has no time limit: it has no end then, and what is estimated
// or charged ahead of time takes that into account. Without a specification it is false.
func (s *Spec) Endless() bool { return s != nil && s.Serve != nil && s.TimeLimit <= 0 }

// FixedPorts are the numbers of the ports that are not chosen at launch, in order of Ports.
func (s *Serve) FixedPorts() (out []int) {
	if s != nil {
		for _, p := range s.Ports {
			if p.Number > 0 {
				out = append(out, p.Number)
			}
		}
	}
	return out
}

// PortNamed returns the port of a name, the first for an empty one; nil: there is none.
func (s *Serve) PortNamed(name string) *Port {
	i := slices.IndexFunc(s.Ports, func(p Port) bool { return name == "" || p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Ports[i]
}

// Variables are the variables that tell the tasks of a job which ports it has, NAME=VALUE: $PORT_NAME
// for each, in upper case and with _ for -, and $PORT for the first. Numbers are in the order of Ports.
func (s *Serve) Variables(numbers []int) []string {
	var out []string
	for i, n := range numbers {
		if i < len(s.Ports) {
			out = append(out, s.Ports[i].Variable()+"="+strconv.Itoa(n))
		}
	}
	if len(numbers) > 0 {
		out = append(out, "PORT="+strconv.Itoa(numbers[0]))
	}
	return out
}

// Variable is the name of the environment variable of a port: PORT_NAME.
func (p *Port) Variable() string {
	return "PORT_" + strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_"))
}

// PortNumbered returns the port that is fixed at a number; nil: there is none.
func (s *Serve) PortNumbered(number int) *Port {
	i := slices.IndexFunc(s.Ports, func(p Port) bool { return p.Number == number })
	if i < 0 {
		return nil
	}
	return &s.Ports[i]
}
