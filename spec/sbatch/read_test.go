package sbatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec"
)

func source(text string) spec.Source { return spec.Source{Name: "job.sbatch", Data: []byte(text)} }

// given prints the options of all components: "ntasks=4 exclusive | nodes=1".
func given(s *Script) string {
	var components []string
	for _, c := range s.Components {
		var list []string
		for _, d := range c {
			list = append(list, strings.TrimPrefix(d.showOption(), "--"))
		}
		components = append(components, strings.Join(list, " "))
	}
	return strings.Join(components, " | ")
}

// The table counts sbatch's options: 120 names.
func TestTable(t *testing.T) {
	all := Table()
	if len(all) != 120 {
		t.Errorf("%d options, want 120", len(all))
	}
	names, letters := map[string]bool{}, map[byte]bool{}
	for _, o := range all {
		if names[o.Name] || o.Short != 0 && letters[o.Short] {
			t.Errorf("--%s stands twice in the table", o.Name)
		}
		names[o.Name], letters[o.Short] = true, true
		if (o.Status == Honoured) != (o.Why == "") {
			t.Errorf("--%s is %s because %q", o.Name, o.Status, o.Why)
		}
		if o.Same != "" && !slices.ContainsFunc(all, func(x Option) bool { return x.Name == o.Same && x.Arg == o.Arg && x.Status == o.Status }) {
			t.Errorf("--%s stands for --%s, which is not there or differs", o.Name, o.Same)
		}
	}
	for _, must := range []string{
		"nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu", "gres", "gpus", "gpus-per-node",
		"gpus-per-task", "gpus-per-socket", "tres-per-task", "time", "job-name", "output", "error", "input", "open-mode", "export",
		"export-file", "chdir", "array", "requeue", "no-requeue", "exclusive", "constraint", "nodelist", "exclude", "nodefile",
	} {
		if k := slices.IndexFunc(all, func(o Option) bool { return o.Name == must }); k < 0 || all[k].Status != Honoured {
			t.Errorf("--%s is not honoured", must)
		}
	}
	for _, v := range variables {
		if o, _ := optionByName(v.option); o == nil && v.why == "" {
			t.Errorf("%s stands for --%s, which does not exist", v.name, v.option)
		}
	}
	for _, name := range propagated {
		if o, _ := optionByName(name); o == nil {
			t.Errorf("--%s is propagated and does not exist", name)
		}
	}
}

func TestReadRules(t *testing.T) {
	for _, c := range []struct{ name, lines, want string }{
		{"cut-off at the first command", "#SBATCH -N1\n\n  # comment\n \t\n:\n#SBATCH -N7", "nodes=1"},
		{"comments", "#SBATCH --mem=64gb#x\n#SBATCH -N1 # -n 4\n##SBATCH -n 2\n# SBATCH -n 3\n #SBATCH -n 5\n#sbatch -n 6", "mem=64gb nodes=1"},
		{"no blank needed", "#SBATCH--mem=1\n#SBATCH\t-N1\n#SBATCH", "mem=1 nodes=1"},
		{"spellings", "#SBATCH -N1 -n 2 --mem 3 --time=4 -J=a", "nodes=1 ntasks=2 mem=3 time=4 job-name==a"},
		{"clusters", "#SBATCH -HsJ x -ON2", "hold oversubscribe job-name=x overcommit nodes=2"},
		{"abbreviations", "#SBATCH --out=a --err b --licenses=x --nodel=c --tasks=3 --cluster=d", "output=a error=b licenses=x nodelist=c ntasks-per-node=3 clusters=d"},
		{"quotes", `#SBATCH -J "a'b"c'd"e'\"\'\#\x\\y -e 'a\'b'`, `job-name=a'bcd"e"'#x\y error=a'b`},
		{"quoted option", `#SBATCH "-Jfoo bar" '-n4'`, "job-name=foo bar ntasks=4"},
		{"hash in quotes", `#SBATCH -J "a#b" --comment=a\#b`, "job-name=a#b comment=a#b"},
		{"backslash at the end", "#SBATCH -N2 \\\n#SBATCH --mem=4\\\n#SBATCH -J a\\\\", `nodes=2 mem=4 job-name=a\`},
		{"argument on the next line", "#SBATCH --job-name\n#SBATCH x -n 4", "job-name=x ntasks=4"},
		{"argument that looks like an option", "#SBATCH -J -e -N1", "job-name=-e nodes=1"},
		{"empty argument ends its line", "#SBATCH -N1 \"\" -n 4\n#SBATCH -J x", "nodes=1 job-name=x"},
		{"empty value", "#SBATCH --job-name= -N1", "job-name= nodes=1"},
		{"components", "#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2 packjob -N3\n#SBATCH -N4", "nodes=1 | nodes=2 nodes=4"},
		{"component word in quotes or as part of a word", "#SBATCH -J 'hetjob' -o hetjob.out", "job-name=hetjob output=hetjob.out"},
		{"component word where a value is due", "#SBATCH -J hetjob\n#SBATCH -c2", "job-name=-c2"},
		{"component with a comment", "#SBATCH hetjob # x\n#SBATCH -N2", " | nodes=2"},
		{"optional arguments are glued", "#SBATCH --nice --exclusive=user --requeue -kx", "nice exclusive=user requeue no-kill=x"},
		{"variables stay", "#SBATCH -o $HOME/${X}", "output=$HOME/${X}"},
		{"odd white space", "#SBATCH -o b\v-e c\f-J d", "output=b error=c job-name=d"},
		{"aliases", "#SBATCH --tasks-per-node=2 --ntasks-per-node 3", "ntasks-per-node=2 ntasks-per-node=3"},
		{"plugin", "#SBATCH --container-image x --no-container-entrypoint", "container-image=x no-container-entrypoint"},
	} {
		s, err := Read(source("#!/bin/sh\n" + c.lines + "\n"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := given(s); got != c.want || len(s.Problems) > 0 {
			t.Errorf("%s: read %s, %v; want %s", c.name, got, s.Problems, c.want)
		}
	}
}

func TestReadProblems(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"#SBATCH -J x hello -n 4", "stray word hello"},
		{"#SBATCH -J a\\ b", "stray word b"},
		{"#SBATCHX -n 4", "stray word X"},
		{"#SBATCH -o b -- -e z", "stray word -e, stray word z"},
		{"#SBATCH --ntask=4", "ambiguous option --ntask"},
		{"#SBATCH --exc", "ambiguous option --exc"},
		{"#SBATCH --foo=1 -Z", "unknown option --foo, unknown option -Z"},
		{"#SBATCH --hold=1", "unwanted argument --hold=1"},
		{"#SBATCH -N1 --time", "missing argument --time"},
		{"#SBATCH -N", "missing argument --nodes"},
		{`#SBATCH -N1 --job-name="a -n 4`, `unmatched quote --job-name="a -n 4`},
		{"#SBATCH: -N1", "unexpected colon : -N1"},
		{"#SBATCH -N1 :c", "unexpected colon :c"},
		{`#SBATCH "hetjob"`, "stray word hetjob"},
		{"#SBATCH hetjobs", "stray word hetjobs"},
		{"#SBATCH –o c", "stray word –o, stray word c"},
		{"#SBATCH --exclusive user", "stray word user"},
	} {
		s, err := Read(source("#!/bin/sh\n" + c.line + "\n"))
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		var got []string
		for _, p := range s.Problems {
			got = append(got, string(p.Kind)+" "+p.Text)
			if p.Line != 2 || p.Col < 8 {
				t.Errorf("%s: %s is said to stand at %d:%d", c.line, p.Text, p.Line, p.Col)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: problems %q, want %q", c.line, got, c.want)
		}
	}
}

// What is no batch script is refused with a line, and with a remedy where there
// is one.
func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int
		message    string
	}{
		{"empty", "", 0, "empty"},
		{"white space", " \n\t\n", 0, "only white space"},
		{"no shebang", "echo hi\n", 1, "does not look like a batch script"},
		{"directive first", "#SBATCH -N1\n", 1, "does not look like a batch script"},
		{"blank before the shebang", " #!/bin/sh\n", 1, "does not look like a batch script"},
		{"byte order mark", "\xef\xbb\xbf#!/bin/sh\n", 1, "byte order mark"},
		{"binary", "#!/bin/sh\necho\n\x00\n", 3, "NUL character"},
		{"program", "\x7fELF\x02\x01\x00", 0, "program, not a batch script"},
		{"DOS", "#!/bin/sh\n#SBATCH -N1\r\necho\r\n", 2, "DOS line ends (\\r\\n) on 2 lines"},
		{"DOS in the body", "#!/bin/sh\n#SBATCH -N1\necho\r\n", 3, "DOS line ends (\\r\\n) on 1 line"},
		{"too large", "#!/bin/sh\n" + strings.Repeat("#", 4<<20), 0, "may have 4 MiB"},
	} {
		_, err := Read(source(c.text))
		var e *spec.Error
		if !errors.As(err, &e) || e.File != "job.sbatch" || e.Line != c.line || !strings.Contains(e.Message, c.message) {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		if e.Remedy == "" && c.name != "binary" {
			t.Errorf("%s: no remedy", c.name)
		}
	}
}

func TestReadWarnings(t *testing.T) {
	for _, c := range []struct{ name, lines, want string }{
		{"late directives", "#SBATCH -N1\necho\n#SBATCH -n 3\n#SBATCH -J x\n", "job.sbatch:4: #SBATCH is not read here (2 lines): reading ends at the first command, line 3"},
		{"here-document", "cat <<-'EOF' > child.sh\n#SBATCH -n 3\n\tEOF\necho <<<x\n", ""},
		{"blanks first", " #SBATCH -N1\n", "job.sbatch:2: not read: a directive starts at the first column, without blanks before #SBATCH"},
		{"small letters", "#sbatch -N1\n", "job.sbatch:2: not read: #sbatch is not #SBATCH (capitals matter)"},
		{"disabled", "##SBATCH -N1\n# SBATCH -N2\n", ""},
		{"late component", "#SBATCH -N1 hetjob -n2\n", "job.sbatch:2: a component ends only where its word is the first of a line, and behind others it ends the line, as it does for sbatch: not read: hetjob -n2"},
		{"empty argument", "#SBATCH -N1 '' -n 4\n", "job.sbatch:2: an empty argument ends the line, as it does for sbatch: not read: '' -n 4"},
	} {
		s, err := Read(source("#!/bin/sh\n" + c.lines))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, w := range s.Warnings {
			got = append(got, w.String())
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: warnings\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"#SBATCH -N1 --mem=4G\n#SBATCH hetjob\n#SBATCH -n2 -J 'a b'\n", "#SBATCH --job-name=\"a\\\"b#c\" \\\n", "#SBATCH -J \"\" -x",
		"#SBATCH –o c : d\n\x80\xff", "#SBATCH --gres=gpu:2 --gpus=4 --array=1-9:2%3 --signal=B:USR1@9 --time=1-2:3",
		"#SBATCH --constraint=[a|b]&c --tres-per-task=cpu:2,gres/gpu:1 -w n[1-3] --begin=now+1hour",
	} {
		f.Add(s)
	}
	for i, h := range readHeaders(f) { // of public scripts, a few short ones
		if text := strings.Join(h.Lines, "\n") + "\n"; i%8 == 0 && len(text) < 500 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, lines string) {
		if len(lines) > 4096 {
			return
		}
		opts := Options{Dir: "/home/anna", MaxArraySize: 100_000}
		job, warnings, err := Parse(source("#!/bin/sh\n"+lines), opts)
		var e *spec.Error
		switch {
		case err != nil && !errors.As(err, &e):
			t.Fatalf("error %T", err)
		case err != nil && e.Message == "":
			t.Fatal("an error without a message")
		case err == nil && len(job.Groups) == 0:
			t.Fatal("a job without task groups")
		}
		_ = fmt.Sprint(err, warnings)
	})
}

// TestLinesOfOtherBatchSystems: they are never read. Beside lines for sbatch that is a warning; a
// script that has no others is refused, unless it is to run without what they ask for.
func TestLinesOfOtherBatchSystems(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		opts        Options
		want        string
	}{
		{
			"beside sbatch's", "#SBATCH -N1\n#PBS -N x\n#PBS -q y\n#BSUB -J z\n",
			Options{},
			"job.sbatch:3: #PBS lines are not read (2 lines): say it with #SBATCH\njob.sbatch:5: #BSUB lines are not read (1 line): say it with #SBATCH",
		},
		{"alone", "#PBS -N x\n\n#PBS -l nodes=2\n", Options{}, "error: the only directives of this script are PBS's (#PBS), which are not read: lines 2, 4"},
		{"LSF alone", "#BSUB -n 4\n", Options{}, "error: the only directives of this script are LSF's (#BSUB), which are not read: line 2"},
		{"Grid Engine alone", "#$ -cwd\n#$ -N x\n", Options{Args: []string{"-N2"}}, "error: the only directives of this script are Grid Engine's (#$), which are not read: lines 2, 3"},
		{"many", strings.Repeat("#PBS -V\n", 10), Options{}, "error: the only directives of this script are PBS's (#PBS), which are not read: lines 2, 3, 4, 5, 6, 7, 8, 9, 2 more"},
		{"ignored by an option", "#PBS -N x\n", Options{Args: []string{"--ignore-pbs"}}, ""},
		{"ignored by the environment", "#PBS -N x\n", Options{Environ: []string{"SBATCH_IGNORE_PBS=1"}}, ""},
		{"ignored by a line", "#SBATCH --ignore-pbs\n#PBS -N x\n", Options{}, ""},
		{"comments", "#PBS lines were here\n#$ costs nothing\n## PBS -N x\n", Options{}, ""},
		{"behind the first command", "true\n#PBS -N x\n", Options{}, ""},
	} {
		_, warnings, err := Parse(source("#!/bin/sh\n"+c.lines), c.opts)
		var got []string
		for _, w := range warnings {
			got = append(got, w.String())
		}
		var e *spec.Error
		if errors.As(err, &e) {
			got = append(got, "error: "+e.Message)
			if e.Line != 2 || !strings.Contains(e.Remedy, "--ignore-pbs") {
				t.Errorf("%s: line %d, %s", c.name, e.Line, e.Remedy)
			}
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), c.want)
		}
	}
}
