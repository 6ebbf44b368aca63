package barrier

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// LaunchExplainer is an optional ability of a Spawner: to say which limit kept it from
// starting processes, or what it started from starting threads; empty: none that it knows.
type LaunchExplainer interface {
	ExplainLaunch() string
}

// ExplainLaunch adds to an error of a launch what a Spawner knows of its cause.
func ExplainLaunch(sp Spawner, err error) error {
	x, ok := sp.(LaunchExplainer)
	if err == nil || !ok {
		return err
	}
	if why := x.ExplainLaunch(); why != "" {
		return fmt.Errorf("%w; %s", err, why)
	}
	return err
}

// LaunchError says of an error of starting a process what can be done about it.
func LaunchError(err error, c *Cmd) error {
	switch {
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%w: its arguments have %d bytes and its %d variables have %d bytes%s; make them shorter, or pass the values in a file",
			unix.E2BIG, sumLengths(c.Args), len(c.Env), sumLengths(c.Env), largestVariable(c.Env))
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("no more processes can be made on this node: %w", err)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return fmt.Errorf("no file descriptor is left on this node: %w; run fewer tasks on it, or raise the server's limit of open files", err)
	case errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("no memory is left on this node for a process: %w", err)
	}
	return err
}

// sumLengths is how many bytes strings take as arguments of a program.
func sumLengths(list []string) int {
	n := 0
	for _, s := range list {
		n += len(s) + 1
	}
	return n
}

// longestString is the length from which the kernel refuses a single argument or variable.
const longestString = 128 << 10

// largestVariable names the largest variable, where it alone is too long.
func largestVariable(env []string) string {
	largest := ""
	for _, v := range env {
		if len(v) > len(largest) {
			largest = v
		}
	}
	if len(largest) < longestString {
		return ""
	}
	name, _, _ := strings.Cut(largest, "=")
	return fmt.Sprintf(", %s alone has %d", name, len(largest))
}
