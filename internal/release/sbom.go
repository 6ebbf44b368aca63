package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// project is the path of the project's module.
const project = "github.com/coxswain-sched/coxswain"

// writeSBOM lists the modules of the release's programs in CycloneDX's JSON form. The number of
// the document is made from what it says, so that the same sources make the same bytes.
func writeSBOM(s Source, modules []Module, needs []string) ([]byte, error) {
	name := func(path, version string) string { return "pkg:golang/" + path + "@" + version }
	own := name(project, string(s.Version))
	names := map[string]string{}
	var components []cdx.Component
	for _, m := range modules {
		names[m.Path] = name(m.Path, m.Version)
		c := cdx.Component{BOMRef: names[m.Path], Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, Scope: cdx.ScopeRequired, PackageURL: names[m.Path]}
		c.Licenses = listLicences(m.Licences)
		if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok { // of the module's files, as go.sum has it
			raw, err := base64.StdEncoding.DecodeString(sum)
			if err != nil {
				return nil, fmt.Errorf("the checksum of %s: %w", m.Path, err)
			}
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
		}
		components = append(components, c)
	}
	edges := []cdx.Dependency{{Ref: own, Dependencies: mapNames(needs, names)}}
	for _, m := range modules {
		edges = append(edges, cdx.Dependency{Ref: names[m.Path], Dependencies: mapNames(m.Needs, names)})
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: s.Time.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: own, Type: cdx.ComponentTypeApplication, Name: project, Version: string(s.Version), PackageURL: own,
			Licenses: listLicences([]string{"Apache-2.0"}),
		},
	}
	bom.Components, bom.Dependencies = &components, &edges
	text, err := encodeSBOM(bom)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8, which is free in form
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	return encodeSBOM(bom)
}

func encodeSBOM(bom *cdx.BOM) ([]byte, error) {
	var b bytes.Buffer
	err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
	return b.Bytes(), err
}

func listLicences(identifiers []string) *cdx.Licenses {
	var all cdx.Licenses
	for _, id := range identifiers {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &all
}

func mapNames(paths []string, names map[string]string) *[]string {
	all := []string{}
	for _, p := range paths {
		all = append(all, names[p])
	}
	return &all
}
