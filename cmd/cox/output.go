package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// format is what -o asks for.
type format string

// The formats. The zero one is text for people.
const (
	asText format = ""
	asWide format = "wide"
	asJSON format = "json"
	asYAML format = "yaml"
	asName format = "name"
)

// formatFlag adds -o with the formats that a command has.
func formatFlag(cmd *cobra.Command, f *format, has ...format) {
	words := make([]string, len(has))
	for i, h := range has {
		words[i] = string(h)
	}
	cmd.Flags().VarP(&formatValue{f, words}, "output", "o", "format: "+strings.Join(words, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// formatValue is the flag: a word of a list.
type formatValue struct {
	to    *format
	words []string
}

func (v *formatValue) String() string {
	if v.to == nil {
		return ""
	}
	return string(*v.to)
}

func (v *formatValue) Type() string { return "FORMAT" }

func (v *formatValue) Set(s string) error {
	for _, w := range v.words {
		if w == s {
			*v.to = format(s)
			return nil
		}
	}
	return fault.New(fault.Invalid, "there is %s", strings.Join(v.words, ", "))
}

// write prints a value of the API as JSON or YAML, with the API's names.
func (f format) write(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", f, err)
	}
	if f == asYAML {
		b, err = yaml.JSONToYAML(b)
		if err != nil {
			return fmt.Errorf("write YAML: %w", err)
		}
		_, err = w.Write(b)
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// machine reports whether the format is for programs.
func (f format) machine() bool { return f == asJSON || f == asYAML }

// writeNames prints one name a line.
func writeNames(w io.Writer, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := io.WriteString(w, strings.Join(names, "\n")+"\n")
	return err
}
