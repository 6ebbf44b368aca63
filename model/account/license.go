package account

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseLicenses reads what a job asks for (sbatch --licenses): names with a number
// each, 1 where none is said, separated by commas: "matlab:2,fluent". A name that
// comes twice is added up. Nothing asks for nothing.
func ParseLicenses(text string) ([]License, error) {
	var out []License
	none := false
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if strings.Contains(text, "|") {
		return nil, fmt.Errorf("%q are alternatives, of which a job has one", text)
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' }) {
		part = strings.TrimSpace(part)
		name, number, counted := strings.Cut(part, ":")
		if !counted {
			name, number, counted = strings.Cut(part, "=")
		}
		if name == "" || strings.ContainsAny(name, " \t\n/") {
			return nil, fmt.Errorf("%q names no licence: write NAME or NAME:COUNT", part)
		}
		l := License{Name: name, Count: 1}
		if counted {
			n, err := strconv.ParseInt(number, 10, 32)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("%q: the number of licences is a whole number", part)
			}
			if l.Count = n; n == 0 {
				none = true
				continue
			}
		}
		i := 0
		for i < len(out) && out[i].Name != name {
			i++
		}
		if i == len(out) {
			out = append(out, l)
		} else {
			out[i].Count += l.Count
		}
	}
	if len(out) == 0 && !none {
		return nil, fmt.Errorf("%q names no licence: write NAME or NAME:COUNT", text)
	}
	return out, nil
}

// LicenseChoices splits what a job asks for into alternatives, of which it is to have one
// (a:4|b): the first that is free, in their order. What has none is its only one. All
// and one of them cannot be asked for together, as in Slurm.
func LicenseChoices(text string) ([]string, error) {
	if !strings.Contains(text, "|") {
		_, err := ParseLicenses(text)
		return []string{text}, err
	}
	if strings.ContainsAny(text, ",;") {
		return nil, fmt.Errorf("%q asks for all (,) and for one of them (|): write either", text)
	}
	var out []string
	for part := range strings.SplitSeq(text, "|") {
		part = strings.TrimSpace(part)
		if list, err := ParseLicenses(part); err != nil || len(list) != 1 {
			return nil, fmt.Errorf("%q: each alternative is NAME or NAME:COUNT", text)
		}
		out = append(out, part)
	}
	return out, nil
}
