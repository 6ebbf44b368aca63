package spec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestErrorPrints(t *testing.T) {
	for _, c := range []struct {
		name string
		err  *Error
		want string
	}{
		{
			"caret and remedy",
			&Error{File: "job.sbatch", Line: 4, Col: 20, Len: 7, Text: "#SBATCH --gres=gpu:h100:16", Message: "--gres=gpu:h100:16: too many", Remedy: "for 16 in all: --nodes=2"},
			"job.sbatch:4: --gres=gpu:h100:16: too many\n      #SBATCH --gres=gpu:h100:16\n                         ^^^^^^^\n  for 16 in all: --nodes=2",
		},
		{"whole file", &Error{File: "a.sh", Message: "is empty"}, "a.sh: is empty"},
		{
			"command line",
			&Error{File: "command line", Col: 1, Len: 3, Text: "-Nx", Message: "-N x is bad"},
			"command line: -N x is bad\n      -Nx\n      ^^^",
		},
		{
			"tabs and invisible characters",
			&Error{File: "f", Line: 1, Col: 5, Len: 2, Text: "a\t\u00a0bé", Message: "m"},
			"f:1: m\n      a <00A0>bé\n              ^^",
		},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestErrorShortensLongLines(t *testing.T) {
	text := strings.Repeat("a", 300) + "WRONG" + strings.Repeat("b", 300)
	lines := strings.Split((&Error{File: "f", Line: 1, Col: 301, Len: 5, Text: text, Message: "m"}).Error(), "\n")
	if len(lines) != 3 || len(lines[1]) > 120 {
		t.Fatalf("%q", lines)
	}
	shown, caret := []rune(lines[1]), strings.Index(lines[2], "^")
	if got := string(shown[caret : caret+5]); got != "WRONG" {
		t.Errorf("the caret stands below %q of %q", got, lines[1])
	}
}

func TestErrorKind(t *testing.T) {
	err := fmt.Errorf("submit: %w", &Error{Message: "m"})
	if got := fault.KindOf(err); got != fault.Invalid {
		t.Errorf("kind %v", got)
	}
}

func TestJoin(t *testing.T) {
	if err := Join(nil); err != nil {
		t.Fatalf("Join(nil) = %v", err)
	}
	var errs []*Error
	for i := range 12 {
		errs = append(errs, &Error{File: "f", Line: 20 - i, Message: "m"})
	}
	err := Join(errs)
	var first *Error
	if !errors.As(err, &first) || first.Line != 9 {
		t.Fatalf("%v", err)
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 11 || lines[10] != "f: 2 more errors" {
		t.Errorf("%q", lines)
	}
}

func TestWarningPrints(t *testing.T) {
	w := Warning{File: "train.sbatch", Line: 7, Option: "--mail-user", Message: "has no effect"}
	if got := w.String(); got != "train.sbatch:7: --mail-user has no effect" {
		t.Error(got)
	}
}
