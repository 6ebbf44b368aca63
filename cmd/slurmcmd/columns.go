package slurmcmd

import (
	"fmt"
	"io"
)

// WriteColumns writes words in lines of so many, each padded to a width.
func WriteColumns(out io.Writer, words []string, perLine, width int) {
	for i, w := range words {
		fmt.Fprintf(out, "%-*s", width, w)
		if (i+1)%perLine == 0 || i == len(words)-1 {
			fmt.Fprintln(out)
		}
	}
}
