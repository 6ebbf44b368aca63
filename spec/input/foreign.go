package input

import "strings"

// Foreign are the beginnings of directives of other batch systems, as they stand in scripts.
// None of them is read.
var Foreign = []struct{ Magic, System string }{
	{"#PBS", "PBS"},
	{"#BSUB", "LSF"},
	{"#$", "Grid Engine"},
	{"#COBALT", "Cobalt"},
	{"#MSUB", "Moab"},
	{"#PJM", "PJM"},
	{"#OAR", "OAR"},
	{"#flux:", "Flux"},
	{"# flux:", "Flux"},
}

// ForeignDirective is the beginning of the directive of another batch system that a line is, ""
// if it is none. A directive has an option behind its beginning.
func ForeignDirective(line string) string {
	if len(line) < 3 || line[0] != '#' {
		return ""
	}
	for _, f := range Foreign {
		rest, ok := strings.CutPrefix(line, f.Magic)
		if ok && rest != "" && (rest[0] == ' ' || rest[0] == '\t') && strings.HasPrefix(strings.TrimLeft(rest, " \t"), "-") {
			return f.Magic
		}
	}
	return ""
}
