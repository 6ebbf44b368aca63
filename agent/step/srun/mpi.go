package srun

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/step/pmix"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/job"
)

// chooseMPI settles how programs of the step find each other. Each form is offered unless
// --mpi=none: one more costs nothing before a program uses it. --mpi=pmix starts the PMIx
// servers before the tasks, so that what is missing is said before anything runs.
func (p *plan) chooseMPI() error {
	kind := p.first.mpi
	p.prep.PMI = true
	p.prep.PMIx = wire.PMIxOffered
	switch kind {
	case "", "openmpi":
	case "none":
		p.prep.PMI, p.prep.PMIx = false, wire.PMIxNone
	case "pmi1", "pmi2":
	case "pmix":
		p.prep.PMIx = wire.PMIxNeeded
	case "pmix_v4", "pmix_v5":
		p.prep.PMIx, p.prep.PMIxVersion = wire.PMIxNeeded, int(kind[len(kind)-1]-'0')
	default:
		return &usageError{fmt.Sprintf("invalid MPI type '%s', --mpi=list for acceptable types", kind)}
	}
	return nil
}

// findNeed looks whether a program of the step is linked with PMIx, so that it needs a server.
func (p *plan) findNeed() {
	if p.prep.PMIx != wire.PMIxOffered {
		return
	}
	for _, program := range p.prep.Programs {
		if len(program.PerRank) == 0 && linkedWithPMIx(program.Args[0], program.Dir) {
			p.prep.PMIx = wire.PMIxNeeded
		}
	}
}

// pmixLibraries are the beginnings of the names of libraries that speak PMIx. MPICH's and
// Intel's libmpi has another number.
var pmixLibraries = []string{"libmpi.so.40", "libmpi_cxx.so.40", "libmpi_mpifh.so.40", "libmpi_usempi", "liboshmem.so.40", "libpmix.so", "libopen-pal.so", "libopen-rte.so"}

// linkedWithPMIx reports whether a program names a library of Open MPI or of PMIx itself. What
// else loads one, such as Python, is met when it connects.
func linkedWithPMIx(name, dir string) bool {
	if !strings.Contains(name, "/") {
		name = lookProgram(name)
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	f, err := elf.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(needed, func(l string) bool {
		return slices.ContainsFunc(pmixLibraries, func(p string) bool { return strings.HasPrefix(l, p) })
	})
}

// lookProgram finds a program in PATH; "" if there is none.
func lookProgram(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file
		}
	}
	return ""
}

// newExchange joins what the PMIx servers of the nodes say.
func (c *client) newExchange() *pmix.Exchange {
	return &pmix.Exchange{
		Layout: pmix.NewLayout(c.plan.alloc, &c.info),
		Send:   func(node int, m pmix.Message) { _ = c.nodes[node].pmix.Send(m) },
		Abort:  c.abortPMIx,
		Lost:   func(rank int) { c.ends <- taskEnd{rank: rank, abort: true, lost: true} },
		Say:    func(text string) { c.sayLine("%s", text) },
	}
}

// handlePMIx takes a frame of a node's PMIx server. Nodes are in the order of the layout.
func (c *client) handlePMIx(r *remote, f wire.Frame) {
	m, ok, err := r.joiner.Add(f)
	if f.Rank < 0 { // of the node itself: its server ended, perhaps within a message
		m, err = pmix.Decode(f.Body)
		ok = err == nil
		m.Text = r.name + ": " + m.Text
	}
	if err != nil {
		c.abortPMIx(-1, exitError, fmt.Sprintf("%s: %v", r.name, err))
		return
	}
	if ok {
		c.exchange.Handle(slices.Index(c.nodes, r), m)
	}
}

// abortPMIx ends the step because a task asked for it, or because a server of it failed.
func (c *client) abortPMIx(rank, code int, text string) {
	c.ends <- taskEnd{rank: rank, abort: true, how: wire.Ending{Exit: job.ExitCode{Status: code & 0xff}, Text: text}}
}

// mpiTypes is the text of --mpi=list: what is served on this machine, as Slurm words it.
func mpiTypes() string {
	out := "MPI plugin types are...\n\tnone\n\tpmi1\n\tpmi2\n"
	self, err := os.Executable()
	if err != nil {
		return out
	}
	if version := pmix.LibraryVersion(self); version != "" {
		major, _, _ := strings.Cut(version, ".")
		out += "\tpmix\nspecific pmix plugin versions available: pmix_v" + major + "\n"
	}
	return out
}

// joinNodeErrors makes one error of what nodes say. What several say alike is said once.
func joinNodeErrors(errs []error) error {
	var unlike []error
	seen := make(map[string]bool)
	for _, err := range errs {
		if err == nil {
			continue
		}
		_, text, _ := strings.Cut(err.Error(), ": ")
		if !seen[text] {
			unlike = append(unlike, err)
		}
		seen[text] = true
	}
	return errors.Join(unlike...)
}
