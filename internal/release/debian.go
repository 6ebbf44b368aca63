package release

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// debianControl has the unit, the configuration and the scripts of the Debian package.
const debianControl = "deploy/debian"

// packDebian is the Debian package of a target's programs and the texts that go along. Its
// maintainer scripts are those of deploy/debian.
func packDebian(s Source, arch string, programs, texts []Entry) ([]byte, error) {
	p := debianPackage{
		Control: []controlField{
			{"Package", "coxswain"},
			{"Version", s.Version.Debian()},
			{"Architecture", arch},
			{"Maintainer", "Coxswain maintainers <maintainers@coxswain.sh>"},
			{"Depends", "init-system-helpers, libc6"}, // cox-gpuprobe and cox-pmix load C libraries
			{"Section", "admin"},
			{"Priority", "optional"},
			{"Homepage", "https://" + project},
			{"Description", "one control plane for GPU work\n" +
				" Runs batch scripts of Slurm and jobs in YAML on this machine, a Slurm cluster\n" +
				" or a Kubernetes cluster. The server (coxswain.service) is not started by the\n" +
				" installation: systemctl enable --now coxswain"},
		},
		Scripts: map[string][]byte{},
		Config:  []string{"/etc/coxswain/cox.yaml"},
		Files:   placeFiles("usr/bin/", programs),
		At:      s.Time,
	}
	read := func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(s.Dir, filepath.FromSlash(debianControl), name))
	}
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		text, err := read(name)
		if err != nil {
			return nil, err
		}
		p.Scripts[name] = text
	}
	for name, to := range map[string]string{"coxswain.service": "usr/lib/systemd/system/", "cox.yaml": "etc/coxswain/"} {
		text, err := read(name)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, Entry{Name: to + name, Text: text})
	}
	for _, e := range texts {
		e.Name = "usr/share/" + e.Name
		e.Name = strings.Replace(e.Name, "/zsh/site-functions/", "/zsh/vendor-completions/", 1)
		if e.Name == "usr/share/doc/coxswain/LICENSE" {
			e.Name = "usr/share/doc/coxswain/copyright"
		}
		p.Files = append(p.Files, e)
	}
	text, err := p.encode()
	if err != nil {
		return nil, fmt.Errorf("the Debian package: %w", err)
	}
	return text, nil
}
