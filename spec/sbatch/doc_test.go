package sbatch

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/sbatch.md anew")

// TestDocTable keeps docs/reference/sbatch.md what the table says.
func TestDocTable(t *testing.T) {
	const path = "../../docs/reference/sbatch.md"
	want := document()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("docs/reference/sbatch.md is not what the table says (%v): make docs", err)
	}
}

func document() string {
	var b strings.Builder
	count := map[Status]int{}
	for _, o := range Table() {
		count[o.Status]++
	}
	fmt.Fprintf(&b, `# Options of sbatch

Made from the table in spec/sbatch/table.go by `+"`make docs`"+`: %d options, of which %d are honoured, %d honoured on some
engines, %d accepted without effect (with a warning that names the line), %d refused.

Options come from the command line (`+"`cox run --time=10`"+`), the SBATCH_* variables, and the #SBATCH lines; the first of these
that has an option wins; --mail-type adds up, and a variable for memory gives way to another kind of memory option. #SBATCH lines are read up to the first command. An option that sbatch does
not have is refused, with the nearest option that it has; one of a plugin that is known (pyxis, shifter, user environments, quotatype, EAR) warns.
Lines of other batch systems (#PBS, #BSUB) are never read.

| option | short | argument | here | why |
|---|---|---|---|---|
`, len(Table()), count[Honoured], count[OnSome], count[NoEffect], count[Refused])
	for _, o := range Table() {
		fmt.Fprintf(&b, "| --%s | %s | %s | %s | %s |\n", o.Name, shortOf(o), argOf(o), hereOf(o), whyOf(o))
	}
	documentVariables(&b)
	documentHet(&b)
	documentMail(&b)
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
	return strings.Join(parts, "; ")
}

func documentVariables(b *strings.Builder) {
	b.WriteString("\n## Variables\n\nEach stands for an option. A variable for an option without argument counts if it is empty, yes or a number other than 0.\n\n" +
		"| variable | option |\n|---|---|\n")
	for _, v := range variables {
		option := "--" + v.option
		if v.option == "" {
			option = "none: " + v.why
		}
		fmt.Fprintf(b, "| %s | %s |\n", v.name, option)
	}
}

func documentHet(b *strings.Builder) {
	fmt.Fprintf(b, `
## Heterogeneous jobs

A line `+"`#SBATCH hetjob`"+` begins the next component. All components start together or none. Each component has for itself:
--%s.

Everything else is one per job and taken from the first component: the name, the partition, the files of output, the account,
the mail and so on. A later component that says another value gets a warning that names the line. Two things differ:
--%s hold for the whole job in whichever component they stand, and of several --time the longest holds.
--mem, --exclude and --distribution of the first component hold for later ones that say nothing of their own. Arrays of
heterogeneous jobs are refused.
`, strings.Join(ofComponent, ", --"), strings.Join(lifted, ", --"))
}

func documentMail(b *strings.Builder) {
	fmt.Fprintf(b, `
## Mail

--mail-type takes %s. ALL stands for %s. Lists on several lines add up; a later NONE takes back what was said before it.
Without --mail-user the submitter is written to.
`, mailForms, strings.Join(mailTypes[:6], ", "))
}
