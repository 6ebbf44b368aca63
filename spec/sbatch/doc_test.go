package sbatch

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/sbatch.md and sbatch-variables.md anew")

// TestDocTable keeps docs/reference/sbatch.md and sbatch-variables.md what the tables say.
func TestDocTable(t *testing.T) {
	for page, want := range map[string]string{"sbatch.md": documentOptions(), "sbatch-variables.md": documentVariables(), "sbatch-hetjobs.md": documentHet()} {
		path := "../../docs/reference/" + page
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("docs/reference/%s is not what the tables say (%v): make docs", page, err)
		}
	}
}

func documentOptions() string {
	var b strings.Builder
	count := map[Status]int{}
	for _, o := range Table() {
		count[o.Status]++
	}
	some := ""
	if n := count[OnSome]; n > 0 {
		some = fmt.Sprintf(", honours %d on some engines only", n)
	}
	fmt.Fprintf(&b, `# Options of sbatch

What `+"`cox run`, `cox submit` and `sbatch`"+` do with each option of sbatch. Of %d options, Coxswain honours %d%s, accepts
%d without effect (a warning names the line), and refuses %d. `+"`make docs`"+` makes this page from spec/sbatch/table.go.

- Options come from the command line (`+"`cox run --time=10`"+`), the [SBATCH_* variables](sbatch-variables.md) and the #SBATCH lines. If
  several give the same option, the first of these wins.
- `+"`--mail-type`"+` is the exception: its values add up. A variable for memory gives way to another kind of memory option.
- Coxswain reads #SBATCH lines up to the first command. `+"`#SBATCH hetjob`"+` begins a component of a [heterogeneous job](sbatch-hetjobs.md).
- An option that sbatch does not have is refused, and the error names the nearest option. Options of known plugins (pyxis,
  shifter, user environments, quotatype, EAR) are accepted with a warning.
- Lines of other batch systems (#PBS, #BSUB) are never read.

| option | short | argument | here | why |
|---|---|---|---|---|
`, len(Table()), count[Honoured], some, count[NoEffect], count[Refused])
	for _, o := range Table() {
		fmt.Fprintf(&b, "| --%s | %s | %s | %s | %s |\n", o.Name, shortOf(o), argOf(o), hereOf(o), whyOf(o))
	}
	fmt.Fprintf(&b, `
## Mail

--mail-type takes %s. ALL means %s. Values on several lines add up; a later NONE removes the values
before it. Without --mail-user, mail goes to the submitter.
`, mailForms, strings.Join(mailTypes[:6], ", "))
	return b.String()
}

func shortOf(o Option) string {
	if o.Short == 0 {
		return ""
	}
	return "-" + string(o.Short)
}

func argOf(o Option) string { return [...]string{"", "yes", "optional"}[o.Arg] }

func hereOf(o Option) string {
	if o.Status == OnSome {
		return "honoured on " + o.Engines
	}
	return o.Status.String()
}

func whyOf(o Option) string {
	var parts []string
	for _, s := range []string{o.Why, o.Note} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if o.Same != "" {
		parts = append(parts, "another name of --"+o.Same)
	}
	return strings.ReplaceAll(strings.Join(parts, "; "), "|", `\|`)
}

func documentVariables() string {
	var b strings.Builder
	b.WriteString(`# Variables of sbatch

Each variable sets an option of [sbatch](sbatch.md). The command line outranks it; it outranks the #SBATCH lines. For an option
without an argument, the variable counts if it is empty, yes or a number other than 0. ` + "`make docs`" + ` makes this page from the
tables in spec/sbatch.

| variable | option |
|---|---|
`)
	for _, v := range variables {
		option := "--" + v.option
		if v.option == "" {
			option = "none: " + v.why
		}
		fmt.Fprintf(&b, "| %s | %s |\n", v.name, option)
	}
	return b.String()
}

func documentHet() string {
	return fmt.Sprintf(`# Heterogeneous jobs

A heterogeneous job has components of different shapes that start together, or none starts:

    #SBATCH --nodes=1 --cpus-per-task=16
    #SBATCH hetjob
    #SBATCH --nodes=4 --gpus-per-node=8

The line `+"`#SBATCH hetjob`"+` begins the next component. Arrays of heterogeneous jobs are refused.

## Options of a component

Each component has its own values of
--%s.

--mem, --exclude and --distribution of the first component also apply to later components that do not set them.

## Options of the whole job

All other options apply to the whole job, and come from the first component: the name, the partition, the output files, the
account, mail and so on. If a later component gives another value, a warning names the line. There are two exceptions:

- --%s apply to the whole job in whichever component they are.
- Of several --time, the longest counts.
`, strings.Join(ofComponent, ", --"), strings.Join(lifted, ", --"))
}
