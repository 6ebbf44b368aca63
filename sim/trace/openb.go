package trace

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Machine is a row of openb's lists of nodes.
type Machine struct {
	Name   string
	CPU    int // thousandths
	Memory int // MiB
	GPUs   int
	Model  string
}

// Pod is a row of openb's lists of pods.
type Pod struct {
	Name   string
	CPU    int // thousandths
	Memory int // MiB
	GPUs   int
	Milli  int    // thousandths of each GPU
	Models string // that will do, with "|" between them; empty: any
}

const (
	machineColumns = "sn,cpu_milli,memory_mib,gpu,model"
	podColumns     = "name,cpu_milli,memory_mib,num_gpu,gpu_milli" // followed by others or not
)

// Machines reads a list of nodes.
func Machines(path string) ([]Machine, error) {
	var out []Machine
	err := readList(path, machineColumns, func(v *values) {
		out = append(out, Machine{Name: v.fields[0], CPU: v.parseCount(1), Memory: v.parseCount(2), GPUs: v.parseCount(3), Model: v.fields[4]})
	})
	return out, err
}

// Pods reads a list of pods, sorted by name.
func Pods(path string) ([]Pod, error) {
	var out []Pod
	err := readList(path, podColumns, func(v *values) { out = append(out, parsePod(v)) })
	slices.SortStableFunc(out, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

func parsePod(v *values) Pod {
	p := Pod{Name: v.fields[0], CPU: v.parseCount(1), Memory: v.parseCount(2), GPUs: v.parseCount(3), Milli: v.parseCount(4)}
	if len(v.fields) > 5 {
		p.Models = v.fields[5]
	}
	if p.Milli > 1000 || p.GPUs > 1 && p.Milli != 1000 || p.GPUs > 0 && p.Milli == 0 {
		v.markBad(4, "is not a part of a GPU in thousandths (1000 for several)")
	}
	return p
}

func readList(path, columns string, row func(*values)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return readListFrom(filepath.Base(path), columns, f, row)
}

func readListFrom(name, columns string, f io.Reader, row func(*values)) error {
	r, err := uncompress(name, f)
	if err != nil {
		return err
	}
	in := newLines(name, r)
	heading, _ := in.next()
	heading = strings.TrimRight(heading, "\r")
	if heading != columns && !(columns == podColumns && strings.HasPrefix(heading, columns+",")) {
		in.no = 1
		return in.failAt("", "the columns are not "+columns)
	}
	return readTable(in, heading, func(v *values) error {
		row(v)
		return v.err
	})
}
