// Command evidence is what the jobs of package killtest run. It writes down for
// itself what happens to it, so that nothing has to be believed of the server:
//
//	evidence [FLAG…] batch|rank
//
// It appends a line to $COX_KILL_DIR/evidence when it starts and one when it ends,
// holds a lock for its life, one for each device that it was given and one for its node, and prints
// numbered lines. How many of them it has printed stands in a file of its own,
// written after each. A lock that somebody else has is written down as a clash.
//
// Locks are of the open file (F_OFD_SETLK): the kernel drops them with the process,
// and others can see them without taking them.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

type process struct {
	dir     string
	name    string // of the job, with the number of an array's task
	attempt int
	rank    string // "b" for the batch script
	journal *os.File
	locks   []*os.File
}

func main() {
	lines := flag.Int("n", 5, "lines to print")
	pause := flag.Duration("pause", 10*time.Millisecond, "after each line")
	width := flag.Int("width", 0, "least length of a line")
	code := flag.Int("exit", 0, "exit code")
	devices := flag.Bool("devices", false, "hold a lock for each visible device")
	deaf := flag.Bool("deaf", false, "ignore SIGTERM")
	on := flag.String("on", "", "hold a lock that says which engine's work is on this node")
	flag.Parse()
	if *deaf {
		signal.Ignore(unix.SIGTERM)
	}
	p, err := beginProcess(flag.Arg(0), *devices)
	if err == nil && *on != "" {
		err = p.takeLock(fmt.Sprintf("on.%s.%s.%s.%s.%d", os.Getenv("SLURMD_NODENAME"), *on, p.name, p.rank, p.attempt))
	}
	if err == nil {
		err = p.printLines(*lines, *width, *pause)
	}
	if err == nil {
		err = p.writeEvidence("end")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "evidence:", err)
		os.Exit(99)
	}
	os.Exit(*code)
}

// beginProcess says that the process is there, and takes its locks.
func beginProcess(role string, devices bool) (*process, error) {
	p := &process{dir: os.Getenv("COX_KILL_DIR"), name: os.Getenv("COX_KILL_NAME"), rank: "b"}
	restarts, _ := strconv.Atoi(os.Getenv("SLURM_RESTART_COUNT")) // not set in a first attempt
	p.attempt = restarts + 1
	if task := os.Getenv("SLURM_ARRAY_TASK_ID"); task != "" {
		p.name += "_" + task
	}
	if role == "rank" {
		p.rank = os.Getenv("SLURM_PROCID")
	}
	var err error
	if p.journal, err = os.OpenFile(filepath.Join(p.dir, "evidence"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	// root/ATTEMPT/NODE, as the engine marks its processes.
	mark := strings.Split(os.Getenv("COX_NODE"), "/")
	ref := mark[max(0, len(mark)-2)]
	if err := p.writeEvidence("start", ref, strconv.Itoa(os.Getppid()), os.Getenv("SLURMD_NODENAME")); err != nil {
		return nil, err
	}
	if err := p.takeLock("life." + p.name + "." + p.rank); err != nil {
		return nil, err
	}
	for _, d := range strings.Split(os.Getenv("CUDA_VISIBLE_DEVICES"), ",") {
		if !devices || d == "" {
			continue
		}
		if err := p.takeLock("device." + os.Getenv("SLURMD_NODENAME") + "." + d); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// writeEvidence appends a line to the evidence: one write, so that lines stay whole.
func (p *process) writeEvidence(what string, more ...string) error {
	f := append([]string{what, p.name, strconv.Itoa(p.attempt), p.rank}, more...)
	_, err := p.journal.WriteString(strings.Join(f, "\t") + "\n")
	return err
}

// takeLock takes a lock until the process ends, and says in the file whose it is.
func (p *process) takeLock(name string) error {
	f, err := os.OpenFile(filepath.Join(p.dir, "lock", name), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	p.locks = append(p.locks, f)
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if err == unix.EAGAIN || err == unix.EACCES {
		b := make([]byte, 200)
		n, _ := f.ReadAt(b, 0)
		return p.writeEvidence("clash", name, strings.TrimSpace(string(b[:n])))
	} else if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(fmt.Sprintf("%-100s\n", p.name+" "+strconv.Itoa(os.Getpid()))), 0)
	return err
}

// printLines prints the lines, and keeps how many were taken from it.
func (p *process) printLines(lines, width int, pause time.Duration) error {
	said, err := os.OpenFile(filepath.Join(p.dir, "said", fmt.Sprintf("%s.%d.%s", p.name, p.attempt, p.rank)), os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	for i := 1; i <= lines; i++ {
		line := fmt.Sprintf("@ %s %d %s %d/%d", p.name, p.attempt, p.rank, i, lines)
		if _, err := fmt.Printf("%-*s.\n", width, line); err != nil {
			return err
		}
		if _, err := said.WriteAt([]byte(fmt.Sprintf("%-8d", i)), 0); err != nil {
			return err
		}
		if pause > 0 {
			time.Sleep(pause)
		}
	}
	return nil
}
