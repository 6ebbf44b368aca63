package job

import (
	"fmt"
	"strconv"
	"strings"
)

// ExitCodes is a set of exit codes 1 to 255 as a site writes it, "1-9,18" (Slurm's RequeueExit).
// Empty: none.
type ExitCodes string

// Has reports whether an end is by one of the codes. A signal is none.
func (c ExitCodes) Has(e ExitCode) bool {
	if c == "" || e.Signal != 0 {
		return false
	}
	for part := range strings.SplitSeq(string(c), ",") {
		if first, last, err := parseCodeRange(part); err == nil && first <= e.Status && e.Status <= last {
			return true
		}
	}
	return false
}

// Check reports the first part that is no exit code and no range of them.
func (c ExitCodes) Check() error {
	if c == "" {
		return nil
	}
	for part := range strings.SplitSeq(string(c), ",") {
		if _, _, err := parseCodeRange(part); err != nil {
			return err
		}
	}
	return nil
}

func parseCodeRange(part string) (first, last int, err error) {
	from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || first < 1 || last > 255 || first > last {
		return 0, 0, fmt.Errorf("%q is neither an exit code from 1 to 255 nor a range of them, as in 1-9,18", part)
	}
	return first, last, nil
}
