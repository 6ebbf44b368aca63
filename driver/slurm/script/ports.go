package script

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
)

// ExitPortless is the exit code of a script whose ports cannot be had. Nothing of the user's has run.
const ExitPortless = 116

// PortBlock is how many ports a job that chooses some has in a row: the lock of the first one is that
// of all. A job can have no more that are chosen.
const PortBlock = 8

// Ports says which ports a job serves on.
type Ports struct {
	Serve *job.Serve
	First int // of the range from which ports are chosen; it begins blocks of PortBlock
	Last  int
}

// PortFile is the name of the file in which the script writes its ports, in the order of Serve.Ports.
func (g *Guard) PortFile(restarts int) string { return g.Lock(restarts) + ".ports" }

// portLocks is the directory on each node with the locks of blocks. The kernel gives a lock back when
// the last process ends that has it: the script, or what took its place.
const portLocks = "/tmp/.coxswain-ports"

// choosePorts is shell code that chooses the ports of a job that serves, sets its variables and
// writes the ports to a file. told is that file, quoted; empty: there is nobody to read it.
func (p *Ports) choosePorts(told string) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	var fixed, chosen []string // patterns of the ports, in hexadecimal
	exports := make([]string, len(p.Serve.Ports))
	for i := range p.Serve.Ports {
		port := &p.Serve.Ports[i]
		name := port.Variable()
		if port.Number != 0 {
			exports[i] = fmt.Sprintf("%s=%d", name, port.Number)
			fixed = append(fixed, fmt.Sprintf(`if %s; then echo "coxswain: port %s: port %d of $(uname -n) is in use: nothing is run" >&2; exit %d; fi`,
				listens(fmt.Sprintf("%04X", port.Number)), port.Name, port.Number, ExitPortless))
			continue
		}
		exports[i] = fmt.Sprintf("%s=$((cox_port + %d))", name, len(chosen))
		chosen = append(chosen, fmt.Sprintf(`$(printf %%04X $((cox_port + %d)))`, len(chosen)))
	}
	for _, line := range fixed {
		fmt.Fprintln(&b, line)
	}
	if len(chosen) > 0 {
		blocks := (p.Last - p.First + 1) / PortBlock
		fmt.Fprintf(&b, `(umask 0; command -p mkdir -m 1777 %[1]s) 2>/dev/null || :
cox_from=$(command -p od -An -N2 -tu2 /dev/urandom) cox_try=0 cox_found=
while [ -z "$cox_found" ] && [ "$cox_try" -lt %[2]d ]; do
cox_try=$((cox_try + 1)) cox_port=$((%[3]d + (cox_from + cox_try) %% %[2]d * %[4]d))
[ -e %[1]s/$cox_port ] || (umask 022; set -C; : >%[1]s/$cox_port) 2>/dev/null || :
[ -f %[1]s/$cox_port ] && [ ! -L %[1]s/$cox_port ] && [ -r %[1]s/$cox_port ] || continue
exec 8<%[1]s/$cox_port
if command -p flock -n 8 && ! %[5]s; then cox_found=1; else exec 8<&-; fi
done
if [ -z "$cox_found" ]; then echo "coxswain: no port from %[3]d to %[6]d of $(uname -n) is free: nothing is run" >&2; exit %[7]d; fi
`, portLocks, blocks, p.First, PortBlock, listens(strings.Join(chosen, "|")), p.Last, ExitPortless)
	}
	fmt.Fprintf(&b, "export %s\nexport PORT=\"$%s\"\n", strings.Join(exports, " "), p.Serve.Ports[0].Variable())
	if told != "" {
		var numbers []string
		for i := range p.Serve.Ports {
			numbers = append(numbers, "$"+p.Serve.Ports[i].Variable())
		}
		fmt.Fprintf(&b, "(umask 022; echo \"%s\" >|%s) || :\n", strings.Join(numbers, " "), told)
	}
	b.WriteString("unset cox_from cox_try cox_found cox_port || :\n")
	return b.String()
}

// listens is shell code that succeeds if somebody listens on one of some ports, written in hexadecimal.
func listens(ports string) string {
	return `command -p cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | command -p grep -Eq "^ *[0-9]+: [0-9A-F]+:(` + ports + `) [0-9A-F:]+ 0A "`
}
