package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Format is what -o asks for.
type Format string

// The formats. The zero one is text for people.
const (
	asText Format = ""
	AsWide Format = "wide"
	AsJSON Format = "json"
	AsYAML Format = "yaml"
	AsName Format = "name"

	AsHTML     Format = "html" // of reports alone, as the two below
	AsCSV      Format = "csv"
	AsMarkdown Format = "md"
)

// FormatFlag adds -o with the formats that a command has.
func FormatFlag(cmd *cobra.Command, f *Format, has ...Format) {
	OutputFormatFlag(cmd, f, "output", "o", has...)
}

// OutputFormatFlag is FormatFlag under another name, for a command of which -o is a job's output.
func OutputFormatFlag(cmd *cobra.Command, f *Format, name, letter string, has ...Format) {
	words := make([]string, len(has))
	for i, h := range has {
		words[i] = string(h)
	}
	usage := "format: " + strings.Join(words, ", ")
	if slices.Contains(has, AsYAML) {
		usage += ", jsonpath=…, custom-columns=…"
	}
	cmd.Flags().VarP(&formatValue{f, words}, name, letter, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// formatValue is the flag: a word of a list.
type formatValue struct {
	to    *Format
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
	if slices.Contains(v.words, string(AsJSON)) && (strings.HasPrefix(s, jsonPathPrefix) || strings.HasPrefix(s, columnsPrefix)) {
		*v.to = Format(s)
		return nil
	}
	for _, w := range v.words {
		if w == s {
			*v.to = Format(s)
			return nil
		}
	}
	return fault.New(fault.Invalid, "there is %s", strings.Join(v.words, ", "))
}

// write prints a value of the API as JSON or YAML, with the API's names.
func (f Format) write(w io.Writer, v any) error {
	b, err := json.MarshalIndent(withoutNil(v), "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", f, err)
	}
	if f == AsYAML {
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

// IsData reports whether the format is for programs.
func (f Format) IsData() bool {
	return f == AsJSON || f == AsYAML || strings.HasPrefix(string(f), jsonPathPrefix) || strings.HasPrefix(string(f), columnsPrefix)
}

// What the formats begin with that have a value of their own.
const (
	jsonPathPrefix = "jsonpath="
	columnsPrefix  = "custom-columns="
)

// WriteNames prints one name a line.
func WriteNames(w io.Writer, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := io.WriteString(w, strings.Join(names, "\n")+"\n")
	return err
}

// WriteValues prints one value by itself, several as a list, none not at all.
func WriteValues[T any](a *App, f Format, values []T) error {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return a.WriteData(f, values[0])
	}
	return a.WriteData(f, values)
}

// ForEach calls f for every name, and goes on after an error.
func ForEach(names []string, f func(name string) error) error {
	var errs []error
	for _, n := range names {
		if err := f(n); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
