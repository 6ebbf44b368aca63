package release_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coxswain-sched/coxswain/internal/checkout"
	"github.com/coxswain-sched/coxswain/internal/release"
)

// moduleFolder is where the files of a module are.
func moduleFolder(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path)
	cmd.Dir = checkout.Path()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestNotices: the licence of every module that the programs' own build information names goes
// along with them, whole, and so do the files that some have beside it.
//
// Seen to fail with: only the licences of modules' roots; one module left out.
func TestNotices(t *testing.T) {
	out := buildHere(t)
	notices := string(read(t, filepath.Join(out, "THIRD_PARTY_NOTICES.txt")))
	for _, name := range []string{"cox", "cox-pod", "cox-slurm", "cox-top"} {
		for _, m := range modulesOf(t, out, name) {
			if !strings.Contains(notices, "\n"+m[0]+" "+m[1]+": LICENSE") && !strings.Contains(notices, "\n"+m[0]+" "+m[1]+": LICENCE") {
				t.Errorf("%s: nothing of %s %s", name, m[0], m[1])
			}
		}
	}
	for _, part := range []string{
		string(bytes.TrimSpace(read(t, filepath.Join(moduleFolder(t, "modernc.org/sqlite"), "LICENSE-SQLITE")))),
		"/spdystream v0.5.1: NOTICE\n", "/spdystream v0.5.1: spdy/LICENSE\n", "std 1.", ": PATENTS\n",
	} {
		if !strings.Contains(notices, part) {
			t.Errorf("nothing of %.60q", part)
		}
	}
	if strings.ContainsAny(notices, "\r") || strings.Contains(notices, checkout.Path()) {
		t.Error("it has lines that end otherwise, or a folder of this machine")
	}
}

// modulesOf are path and version of the modules in a program of the release.
func modulesOf(t *testing.T, out, name string) [][2]string {
	t.Helper()
	to := t.TempDir()
	archives, err := filepath.Glob(filepath.Join(out, "*_linux_*.tar.gz"))
	if err != nil || len(archives) == 0 {
		t.Fatal("no archive", err)
	}
	unpackArchive(t, archives[0], to)
	said, err := exec.Command("go", "version", "-m", filepath.Join(to, strings.TrimSuffix(filepath.Base(archives[0]), ".tar.gz"), "bin", name)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var all [][2]string
	for line := range strings.Lines(string(said)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "dep" {
			all = append(all, [2]string{f[1], f[2]})
		}
	}
	return all
}

// TestSBOM: the list of parts is a CycloneDX document, and it has each module of cox with its
// version, and a licence.
//
// Seen to fail with: no Needs of the project's own; a wrong form of the serial number.
func TestSBOM(t *testing.T) {
	out := buildHere(t)
	text := read(t, filepath.Join(out, "coxswain_1.2.3-rc.1.cdx.json"))
	schemas := filepath.Join(moduleFolder(t, "github.com/CycloneDX/cyclonedx-go"), "schema")
	c := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schemax.json"} {
		file, err := os.Open(filepath.Join(schemas, name))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("http://cyclonedx.org/schema/"+strings.Replace(name, "schemax", "schema", 1), doc); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
	var bom struct {
		Components []struct {
			Name, Version, PURL string
			Licenses            []any
			Hashes              []any
		}
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, c := range bom.Components {
		versions[c.Name] = c.Version
		if len(c.Licenses) == 0 || len(c.Hashes) == 0 && c.Name != "std" || c.PURL != "pkg:golang/"+c.Name+"@"+c.Version {
			t.Errorf("%+v", c)
		}
	}
	for _, m := range modulesOf(t, out, "cox") {
		if versions[m[0]] != m[1] {
			t.Errorf("%s is of version %q, and in cox of %s", m[0], versions[m[0]], m[1])
		}
	}
	depends := map[string][]string{}
	for _, d := range bom.Dependencies {
		depends[d.Ref] = d.DependsOn
	}
	sqlite, libc := "pkg:golang/modernc.org/sqlite@"+versions["modernc.org/sqlite"], "pkg:golang/modernc.org/libc@"+versions["modernc.org/libc"]
	if own := depends["pkg:golang/github.com/coxswain-sched/coxswain@v1.2.3-rc.1"]; !slices.Contains(own, sqlite) || !slices.Contains(depends[sqlite], libc) {
		t.Errorf("coxswain needs %q; sqlite %q", own, depends[sqlite])
	}
}

// TestIdentifyLicences: the texts of licences that are known, told apart by what they say, and
// nothing for one that asks for more.
//
// Seen to fail with: the third clause not looked for.
func TestIdentifyLicences(t *testing.T) {
	const redistribution = "Redistribution and use in source and binary forms, with or without\n modification, are permitted provided that:\n"
	for text, want := range map[string]string{
		redistribution: "BSD-2-Clause",
		redistribution + "* Neither the name of X nor": "BSD-3-Clause",
		"Permission is hereby granted, free of charge, to any person obtaining a copy\nof this software and associated documentation files (the": "MIT",
		"                                 Apache License\n                           Version 2.0, January 2004\n":                                "Apache-2.0",
		"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007":                                                                                    "",
		"Mozilla Public License Version 2.0": "",
	} {
		if got := strings.Join(release.IdentifyLicence(text), ","); got != want {
			t.Errorf("%.40q is %q, and not %q", text, got, want)
		}
	}
}
