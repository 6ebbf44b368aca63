package tutorial

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// step is a command of a page, or a file that the page tells the reader to write.
type step struct {
	line    int
	command string   // what the shell runs
	shown   bool     // the page shows the command, so its output counts
	fails   bool     // the command ends with an exit code other than 0
	output  []string // the lines that the page shows below the command
}

var (
	fenceForm = regexp.MustCompile("^```(\\w+)(?: title=\"([^\"]+)\")?$")
	runForm   = regexp.MustCompile(`^<!-- run: (.*) -->$`)
)

// readPage returns the steps of a page in order.
func readPage(path string) ([]step, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var steps []step
	fails := false
	lines := strings.Split(string(text), "\n")
	for at := 0; at < len(lines); at++ {
		switch hidden, fence := runForm.FindStringSubmatch(lines[at]), fenceForm.FindStringSubmatch(lines[at]); {
		case lines[at] == "<!-- fails -->":
			fails = true
		case hidden != nil:
			steps = append(steps, step{line: at + 1, command: hidden[1]})
		case fence != nil:
			first := at + 1
			for at++; at < len(lines) && lines[at] != "```"; at++ {
			}
			if at == len(lines) {
				return nil, fmt.Errorf("%s:%d: a block without an end", path, first)
			}
			block := lines[first:at]
			switch {
			case fence[2] != "":
				steps = append(steps, step{line: first, command: "cat >" + fence[2] + " <<'END-OF-FILE'\n" + strings.Join(block, "\n") + "\nEND-OF-FILE"})
			case fence[1] == "console":
				for i, line := range block {
					switch command, is := strings.CutPrefix(line, "$ "); {
					case is:
						steps = append(steps, step{line: first + i + 1, command: command, shown: true, fails: fails})
						fails = false
					case i == 0:
						return nil, fmt.Errorf("%s:%d: output without a command", path, first+1)
					default:
						last := &steps[len(steps)-1]
						last.output = append(last.output, line)
					}
				}
			}
		}
	}
	return steps, nil
}

// varying are the parts of a line that differ from run to run.
var varying = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?|\d{4}-\d\d-\d\d[ T]?|\b\d+:\d\d(:\d\d(\.\d+)?)?|\b\d+(\.\d+)? ?(ms|s|min|h|B|KB|KiB|MB|MiB|GB|GiB|days?)\b|\b\d+\.\d+ `)

// lineForm returns the pattern of a line that a page shows.
func lineForm(line string) *regexp.Regexp {
	line = regexp.QuoteMeta(normal(line))
	return regexp.MustCompile("^" + strings.ReplaceAll(line, "…", ".*") + "$")
}

func normal(line string) string {
	return strings.Join(strings.Fields(varying.ReplaceAllString(line, "#")), " ")
}

// differences says what of the promised output is missing, and what came that the page does not
// show.
func differences(promised, came []string) []string {
	var out []string
	any := false
	used := make([]bool, len(came))
	for _, line := range promised {
		if line == "…" {
			any = true
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		form, found := lineForm(line), false
		for i := range came {
			if !used[i] && form.MatchString(normal(came[i])) {
				used[i], found = true, true
				break
			}
		}
		if !found {
			out = append(out, "missing: "+line)
		}
	}
	for i, line := range came {
		if !used[i] && !any && strings.TrimSpace(line) != "" {
			out = append(out, "not on the page: "+line)
		}
	}
	return out
}
