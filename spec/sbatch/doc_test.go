package sbatch

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/sbatch.md anew")

// TestDocTable keeps docs/sbatch.md what the table says.
func TestDocTable(t *testing.T) {
	const path = "../../docs/sbatch.md"
	want := document()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("docs/sbatch.md is not what the table says (%v): make docs", err)
	}
}

func document() string {
	var b strings.Builder
	count := map[Status]int{}
	for _, o := range Table() {
		count[o.Status]++
	}
	fmt.Fprintf(&b, `# Options of sbatch

Made from the table in spec/sbatch/table.go by `+"`make docs`"+`: %d options, of which %d are honoured, %d accepted without
effect (with a warning that names the line), %d refused.

Options come from the command line (`+"`cox run -s --time=10`"+`), the SBATCH_* variables, and the #SBATCH lines; the first of these
that has an option wins. #SBATCH lines are read up to the first command. An option that sbatch does not have warns if it
belongs to a plugin or another site, and is an error where it is a slip of a real one.

| option | short | argument | here | why |
|---|---|---|---|---|
`, len(Table()), count[Honoured], count[NoEffect], count[Refused])
	for _, o := range Table() {
		short, arg, why := "", "", o.Why
		if o.Short != 0 {
			short = "-" + string(o.Short)
		}
		switch o.Arg {
		case Required:
			arg = "yes"
		case Optional:
			arg = "optional"
		}
		if o.Same != "" {
			why = strings.TrimPrefix(why+"; another name of --"+o.Same, "; ")
		}
		fmt.Fprintf(&b, "| --%s | %s | %s | %s | %s |\n", o.Name, short, arg, o.Status, why)
	}
	return b.String()
}
