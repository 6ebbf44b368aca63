package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestExitCodesAreDocumented: docs/reference/exit-codes.md has every kind with its numbers.
func TestExitCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	for k := fault.Internal; k <= fault.Exhausted; k++ {
		for _, want := range []string{
			fmt.Sprintf("| %s | %d | %d", k, k.ExitCode(), k.HTTPStatus()),
			fmt.Sprintf("| %d | %s |", k.ExitCode(), k),
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("docs/reference/exit-codes.md lacks %q", want)
			}
		}
	}
}
