package release

import (
	"bytes"
	"crypto/md5" // dpkg's list of checksums is made of it; it protects nothing
	"fmt"
	"strings"
	"time"
)

// debianPackage is one binary package for dpkg: what deb(5) and deb-control(5) describe.
type debianPackage struct {
	Control []controlField
	Scripts map[string][]byte // preinst, postinst, prerm, postrm
	Config  []string          // names of files of the administrator's, absolute
	Files   []Entry
	At      time.Time
}

// controlField is a field of the control file. A line of the value after the first begins with
// a space, as dpkg wants it.
type controlField struct{ Name, Value string }

// encode is the package's file: an ar archive of a version, the control files and the files.
func (p *debianPackage) encode() ([]byte, error) {
	var control, sums strings.Builder
	var kilobytes int
	for _, e := range addFolders(p.Files) {
		kilobytes += (len(e.Text) + 1023) / 1024
		if strings.HasSuffix(e.Name, "/") {
			kilobytes++ // as dpkg-gencontrol counts a folder
			continue
		}
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(e.Text), e.Name)
	}
	for _, f := range p.Control {
		fmt.Fprintf(&control, "%s: %s\n", f.Name, f.Value)
		if f.Name == "Architecture" {
			fmt.Fprintf(&control, "Installed-Size: %d\n", kilobytes)
		}
	}
	members := []Entry{{Name: "control", Text: []byte(control.String())}, {Name: "md5sums", Text: []byte(sums.String())}}
	if len(p.Config) > 0 {
		members = append(members, Entry{Name: "conffiles", Text: []byte(strings.Join(p.Config, "\n") + "\n")})
	}
	for name, text := range p.Scripts {
		members = append(members, Entry{Name: name, Text: text, Mode: 0o755})
	}
	controlArchive, err := tarGzip("./", members, p.At)
	if err != nil {
		return nil, err
	}
	dataArchive, err := tarGzip("./", p.Files, p.At)
	if err != nil {
		return nil, err
	}
	return arArchive([]Entry{{Name: "debian-binary", Text: []byte("2.0\n")}, {Name: "control.tar.gz", Text: controlArchive}, {Name: "data.tar.gz", Text: dataArchive}}, p.At), nil
}

// arArchive is an archive as deb(5) takes it: of the common form of ar, with short names.
func arArchive(entries []Entry, at time.Time) []byte {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", e.Name, at.Unix(), 0, 0, 0o100644, len(e.Text))
		b.Write(e.Text)
		if len(e.Text)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
