package sbatch

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fill repeats a text up to a quarter of the size of the largest script.
func fill(text func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < MaxScript/4; i++ {
		b.WriteString(text(i))
	}
	return b.String()
}

// A large script costs about as much as reading it, whatever stands in it: it is the
// server that parses. Time of this process is measured, not that of a busy machine.
func TestHostileScripts(t *testing.T) {
	list := func(option string, item func(i int) string) func() string {
		return func() string { return "#SBATCH --" + option + "=" + fill(item) + "x\n" }
	}
	for name, text := range map[string]func() string{
		"overrides":         func() string { return fill(func(i int) string { return fmt.Sprintf("#SBATCH -N%d\n", i%7+1) }) },
		"slips":             func() string { return fill(func(i int) string { return fmt.Sprintf("#SBATCH --nodse=%d\n", i) }) },
		"unknown options":   func() string { return fill(func(i int) string { return fmt.Sprintf("#SBATCH --quux%d=1\n", i) }) },
		"ambiguous options": func() string { return fill(func(int) string { return "#SBATCH --n\n" }) },
		"components":        func() string { return fill(func(int) string { return "#SBATCH hetjob\n" }) },
		"stray words":       func() string { return "#SBATCH " + fill(func(int) string { return "a " }) + "\n" },
		"stray lines":       func() string { return fill(func(int) string { return "#SBATCH a\n" }) },
		"quotes":            func() string { return "#SBATCH " + fill(func(int) string { return `"a'b\"c" ` }) + "\n" },
		"one word":          func() string { return "#SBATCH --comment='" + fill(func(int) string { return "aé" }) + "'\n" },
		"foreign":           func() string { return fill(func(int) string { return "#PBS -N x\n" }) },
		"late":              func() string { return "true\n" + fill(func(int) string { return "#SBATCH -N2\n" }) },
		"here-documents":    func() string { return "true\n" + fill(func(int) string { return "cat <<E\n#SBATCH x\nE\n" }) },
		"letters":           func() string { return "#SBATCH -" + fill(func(int) string { return "Z" }) + "\n" },
		"mail types":        list("mail-type", func(i int) string { return fmt.Sprintf("T%d,", i) }),
		"mail lines":        func() string { return fill(func(int) string { return "#SBATCH --mail-type=END\n" }) },
		"dependencies":      list("dependency", func(i int) string { return fmt.Sprintf("afterok:%d,", i+1) }),
		"singletons":        list("dependency", func(int) string { return "singleton," }),
		"resources":         list("gres", func(i int) string { return fmt.Sprintf("r%d:1,", i) }),
		"GPUs":              list("gpus", func(i int) string { return fmt.Sprintf("t%d:1,", i) }),
		"resources of tasks": func() string {
			return "#SBATCH -n2 --tres-per-task=" + fill(func(i int) string { return fmt.Sprintf("gres/r%d:1,", i) }) + "x\n"
		},
		"partitions":   list("partition", func(i int) string { return fmt.Sprintf("p%d,", i) }),
		"hosts":        list("nodelist", func(i int) string { return fmt.Sprintf("n%d,", i) }),
		"ranges":       list("exclude", func(int) string { return "n[1-9]," }),
		"array":        list("array", func(i int) string { return fmt.Sprintf("%d,", i%90000) }),
		"array ranges": list("array", func(int) string { return "0-90000," }),
		"alternatives": list("constraint", func(int) string { return "a|" }),
		"conjunctions": list("constraint", func(int) string { return "a&" }),
		"features":     list("constraint", func(i int) string { return fmt.Sprintf("f%d&", i) }),
		"parentheses":  list("constraint", func(int) string { return "(" }),
		"licences":     list("licenses", func(int) string { return "a:1," }),
		"exports":      list("export", func(i int) string { return fmt.Sprintf("A%d,", i) }),
		"sizes":        list("nodes", func(int) string { return "1-4," }),
		"time":         list("time", func(int) string { return "1:" }),
		"begin":        list("begin", func(int) string { return "now " }),
	} {
		script := "#!/bin/sh\n" + text()
		start := used()
		s, warnings, err := Parse(source(script), Options{Dir: "/d", MaxArraySize: 100_000})
		took := used() - start
		if took > 4*time.Second { // most take 0.1 s, none a second
			t.Errorf("%s: %v", name, took)
		}
		if n := len(warnings); n > maxWarnings+1 {
			t.Errorf("%s: %d warnings", name, n)
		}
		if err != nil && len(err.Error()) > 100_000 {
			t.Errorf("%s: a message of %d bytes", name, len(err.Error()))
		}
		if s != nil && len(s.Groups) > maxComponents {
			t.Errorf("%s: %d groups", name, len(s.Groups))
		}
		t.Logf("%-20s %8v  %d warnings, %.80v", name, took.Round(time.Millisecond), len(warnings), err)
	}
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
