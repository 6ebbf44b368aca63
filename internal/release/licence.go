package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Module is a module of somebody else's that programs of the release are linked with; the
// standard library is one, "std".
type Module struct {
	Path, Version string
	Sum           string   // as go.sum has it; "" of the standard library
	Licences      []string // SPDX identifiers, all of which apply; never empty
	Needs         []string // paths of the modules whose packages it imports, sorted
	texts         []licenceText
}

// licenceText is a file with a licence, a notice or a grant of patents.
type licenceText struct {
	name string // below the module's folder, with slashes
	text []byte
}

// listedPackage is what go list says of a package.
type listedPackage struct {
	ImportPath, Dir, Name string
	Standard              bool
	Imports               []string
	ImportMap             map[string]string
	Module                *struct {
		Path, Version, Dir, Sum string
		Main                    bool
		Replace                 *struct{ Path string }
	}
}

// linkedModules lists the modules whose packages are linked into any program of any target,
// sorted by path. Needs of the project's own module are the second result. A module whose
// licence is missing or unknown is an error: somebody has to read it first.
func (b *build) linkedModules(ctx context.Context) ([]Module, []string, error) {
	modules := map[string]*Module{"std": {Path: "std", Version: strings.TrimPrefix(b.goVersion, "go")}}
	folders := map[string]map[string]bool{} // module → folders below it that packages are in
	roots := map[string]string{"std": b.goRoot}
	needs := map[string]map[string]bool{}
	own := ""
	for _, t := range b.Targets {
		packages, err := b.listPackages(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		moduleOf := map[string]string{}
		for _, p := range packages {
			if moduleOf[p.ImportPath] = "std"; p.Standard {
				continue
			}
			m := p.Module
			if m == nil || m.Replace != nil {
				return nil, nil, fmt.Errorf("package %s is in no module that a proxy serves: a release has no replace lines", p.ImportPath)
			}
			moduleOf[p.ImportPath] = m.Path
			if m.Main {
				own = m.Path
				continue
			}
			if modules[m.Path] == nil {
				modules[m.Path] = &Module{Path: m.Path, Version: m.Version, Sum: m.Sum}
				folders[m.Path], roots[m.Path] = map[string]bool{}, m.Dir
			}
			below, err := filepath.Rel(m.Dir, p.Dir)
			if err != nil {
				return nil, nil, err
			}
			folders[m.Path][filepath.ToSlash(below)] = true
		}
		for _, p := range packages {
			from := moduleOf[p.ImportPath]
			if needs[from] == nil {
				needs[from] = map[string]bool{}
			}
			for _, name := range p.Imports {
				if real := p.ImportMap[name]; real != "" {
					name = real
				}
				if to := moduleOf[name]; to != from && to != "" {
					needs[from][to] = true
				}
			}
		}
	}
	var all []Module
	for path, m := range modules {
		var err error
		if m.texts, err = findLicences(roots[path], folders[path]); err != nil {
			return nil, nil, err
		}
		if m.Licences = identifyLicences(m.texts); len(m.Licences) == 0 {
			return nil, nil, fmt.Errorf("%s %s in %s has no licence that is known: read it, and teach internal/release its text", path, m.Version, roots[path])
		}
		m.Needs = sortedKeys(needs[path])
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return all, sortedKeys(needs[own]), nil
}

// listPackages lists the programs of a target with all that they import.
func (b *build) listPackages(ctx context.Context, t Target) ([]listedPackage, error) {
	args := []string{"list", "-deps", "-json=ImportPath,Dir,Name,Standard,Imports,ImportMap,Module"}
	out, err := b.runGo(ctx, t, append(args, t.packages()...)...)
	if err != nil {
		return nil, err
	}
	var all []listedPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

func sortedKeys(set map[string]bool) []string {
	var all []string
	for k := range set {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// licenceName is how files with licences are called.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([.-].*)?$`)

// findLicences reads what binds a module's users: files of the module's root, and of the folders
// between it and the packages that are linked.
func findLicences(root string, folders map[string]bool) ([]licenceText, error) {
	places := map[string]bool{".": true}
	for dir := range folders {
		for ; dir != "." && dir != "/"; dir = filepath.ToSlash(filepath.Dir(dir)) {
			places[dir] = true
		}
	}
	var all []licenceText
	for _, dir := range sortedKeys(places) {
		files, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !licenceName.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") || f.Type()&fs.ModeType != 0 {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, dir, f.Name()))
			if err != nil {
				return nil, err
			}
			all = append(all, licenceText{name: filepath.ToSlash(filepath.Join(dir, f.Name())), text: text})
		}
	}
	return all, nil
}

// licenceMarks tells licences by sentences that no other has. The licences are those that ask
// for no more than their text beside the programs, which the notices give.
var licenceMarks = []struct{ identifier, sentence string }{
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"Apache-2.0", "licensed under the apache license, version 2.0"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files"},
}

// bsdSentence begins both licences of the kind; the longer one has a third clause.
const (
	bsdSentence = "redistribution and use in source and binary forms, with or without modification, are permitted"
	thirdClause = "neither the name"
)

// identifyLicences returns the SPDX identifiers of all licences in some texts, sorted.
func identifyLicences(texts []licenceText) []string {
	found := map[string]bool{}
	for _, t := range texts {
		words := strings.Join(strings.Fields(strings.ToLower(string(t.text))), " ")
		for _, m := range licenceMarks {
			if strings.Contains(words, m.sentence) {
				found[m.identifier] = true
			}
		}
		switch {
		case !strings.Contains(words, bsdSentence):
		case strings.Contains(words, thirdClause):
			found["BSD-3-Clause"] = true
		default:
			found["BSD-2-Clause"] = true
		}
	}
	return sortedKeys(found)
}

// noticesRule is between the modules of the notices.
var noticesRule = strings.Repeat("=", 80)

// writeNotices is the text that goes along with the programs: every module that is linked, and
// what its authors want said.
func writeNotices(modules []Module) []byte {
	var b bytes.Buffer
	b.WriteString("Coxswain's programs contain the following software. Each is used under its own\nlicence, whose text is below.\n\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "  %s %s (%s)\n", m.Path, m.Version, strings.Join(m.Licences, ", "))
	}
	for _, m := range modules {
		for _, t := range m.texts {
			fmt.Fprintf(&b, "\n%s\n%s %s: %s\n\n%s\n", noticesRule, m.Path, m.Version, t.name, bytes.TrimSpace(bytes.ReplaceAll(t.text, []byte("\r"), nil)))
		}
	}
	return b.Bytes()
}
