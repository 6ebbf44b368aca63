package srun

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// readMultiProg reads the file of --multi-prog: lines of "ranks program arguments",
// where ranks is a list such as 0,2-3 or *, and in the arguments %t is the rank and
// %o its place among the line's ranks. Arguments of the command line follow those of
// every program.
func readMultiProg(name string, more []string, tasks int) (map[int][]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("Unable to open configuration file %w", err)
	}
	out := make(map[int][]string)
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	for i, line := range strings.Split(joined, "\n") {
		words, err := shellWords(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		if len(words) == 0 {
			continue
		}
		ranks, err := rankList(words[0], tasks)
		if err != nil || len(words) < 2 {
			return nil, fmt.Errorf("%s:%d: %q: a line is: ranks program arguments", name, i+1, line)
		}
		for offset, r := range ranks {
			if out[r] != nil {
				if words[0] == "*" {
					continue
				}
				return nil, fmt.Errorf("%s:%d: duplicate program for task %d", name, i+1, r)
			}
			for _, w := range words[1:] {
				w = strings.ReplaceAll(w, "%t", strconv.Itoa(r))
				out[r] = append(out[r], strings.ReplaceAll(w, "%o", strconv.Itoa(offset)))
			}
			out[r] = append(out[r], more...)
		}
	}
	for r := range tasks {
		if out[r] == nil {
			return nil, fmt.Errorf("%s: no program for task %d", name, r)
		}
	}
	return out, nil
}

// rankList reads "0,2-3" or "*"; ranks that the step does not have are left out.
func rankList(list string, tasks int) ([]int, error) {
	var out []int
	if list == "*" {
		for r := range tasks {
			out = append(out, r)
		}
		return out, nil
	}
	for word := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		low, err1 := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || low < 0 || high < low {
			return nil, fmt.Errorf("%q is not a list of ranks", list)
		}
		for r := low; r <= min(high, tasks-1); r++ {
			out = append(out, r)
		}
	}
	return out, nil
}

// shellWords cuts a line into words at blanks; quotes and a backslash keep them
// together, # begins a comment.
func shellWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	open, quote := false, rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, open = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == '#' && !open:
			return words, nil
		case r == ' ' || r == '\t' || r == '\r':
			if open {
				words = append(words, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is not closed")
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}
