package slurmfmt

import (
	"strconv"
	"strings"
)

// NotArray is what %a prints outside an array, as Slurm does.
const NotArray = 4294967294

// Names holds what the patterns in a file name stand for.
type Names struct {
	Job      uint64 // %j
	ArrayJob uint64 // %A; the job's own number outside an array
	Task     uint32 // %a; NotArray outside an array
	JobName  string // %x
	User     string // %u
	Node     string // %N, short host name
	NodeRank int    // %n, number of the node in the job
	Rank     int    // %t, number of the task in the step
	Step     string // %s and %S: "0", "batch"
	Restarts int    // %r, how often the job was requeued
}

// ExpandName replaces the % patterns of an output file's name. A number between
// % and the letter pads numbers with zeros (at most 10 digits); unknown patterns
// stay as they are. A backslash anywhere turns all replacement off and is left
// out itself.
func ExpandName(pattern string, n Names) string {
	if strings.Contains(pattern, `\`) {
		return strings.ReplaceAll(pattern, `\`, "")
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(pattern, "%")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		if digits == len(rest) {
			b.WriteString("%" + rest)
			return b.String()
		}
		width, _ := strconv.Atoi(rest[:digits])
		value, known := n.expandLetter(rest[digits], min(width, 10))
		if !known {
			value = "%" + rest[:digits+1]
		}
		b.WriteString(value)
		pattern = rest[digits+1:]
	}
}

// expandLetter returns what a letter stands for.
func (n Names) expandLetter(letter byte, width int) (string, bool) {
	num := func(v uint64) (string, bool) {
		s := strconv.FormatUint(v, 10)
		return strings.Repeat("0", max(0, width-len(s))) + s, true
	}
	switch letter {
	case '%':
		return "%", true
	case 'A':
		if n.ArrayJob == 0 {
			return num(n.Job)
		}
		return num(n.ArrayJob)
	case 'a':
		return num(uint64(n.Task))
	case 'b':
		return num(uint64(n.Task % 10))
	case 'J':
		job, _ := num(n.Job)
		if n.Step == "" || n.Step == "batch" {
			return job, true
		}
		return job + "." + n.Step, true
	case 'j':
		return num(n.Job)
	case 'N':
		return n.Node, true
	case 'n':
		return num(uint64(n.NodeRank))
	case 'r':
		return num(uint64(n.Restarts))
	case 's', 'S':
		if v, err := strconv.ParseUint(n.Step, 10, 64); err == nil {
			return num(v)
		}
		return n.Step, true
	case 't':
		return num(uint64(n.Rank))
	case 'u':
		return n.User, true
	case 'x':
		return n.JobName, true
	}
	return "", false
}
