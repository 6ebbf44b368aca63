package release

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-sched/coxswain/internal/image"
)

// Names of the images, as deploy/kubernetes and the chart have them.
const (
	serverImage = "coxswain.sh/cox"
	agentImage  = "coxswain.sh/agent"
)

// packImages makes the two images of a target: the server's and that of the agent in pods. The
// licences are in both.
func (b *build) packImages(t Target) error {
	server, err := image.Cox(serverImage+":"+b.Version.Plain(), t.Arch, b.programFolder(t))
	if err != nil {
		return err
	}
	agent, err := image.Agent(agentImage+":"+b.Version.Plain(), t.Arch, b.programFolder(t))
	if err != nil {
		return err
	}
	for name, i := range map[string]*image.Image{"coxswain-image": server, "coxswain-agent-image": agent} {
		for _, e := range b.texts {
			if strings.HasSuffix(e.Name, "/LICENSE") || strings.HasSuffix(e.Name, "/THIRD_PARTY_NOTICES.txt") {
				i.Entries = append(i.Entries, image.Entry{Name: "usr/share/" + e.Name, Text: e.Text, Mode: 0o644})
			}
		}
		i.Labels = map[string]string{
			"org.opencontainers.image.version": b.Version.Plain(), "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source": "https://" + project,
		}
		if b.files[name+"_"+b.Version.Plain()+"_"+t.Arch+".tar"], err = i.Encode(); err != nil {
			return err
		}
	}
	return nil
}

// chartFolder has the chart; its Chart.yaml has the lines of a development version.
const chartFolder = "deploy/helm/coxswain"

// packChart is the Helm chart, with the release's version for itself and for the images.
func (b *build) packChart() error {
	root := filepath.Join(b.Dir, filepath.FromSlash(chartFolder))
	var entries []Entry
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, name)
		if below == "Chart.yaml" {
			for _, line := range [][2]string{{"\nversion: 0.0.0\n", "\nversion: " + b.Version.Plain() + "\n"}, {"\nappVersion: latest\n", "\nappVersion: " + b.Version.Plain() + "\n"}} {
				if !bytes.Contains(text, []byte(line[0])) {
					return fmt.Errorf("%s has no line %q", name, line[0])
				}
				text = bytes.Replace(text, []byte(line[0]), []byte(line[1]), 1)
			}
		}
		entries = append(entries, Entry{Name: filepath.ToSlash(below), Text: text})
		return err
	})
	if err != nil {
		return err
	}
	b.files["coxswain-"+b.Version.Plain()+".tgz"], err = tarGzip("coxswain/", entries, b.Time)
	return err
}
