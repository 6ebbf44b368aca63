// Command make writes the project's images from a folder with its programs: what
// scripts/image.sh calls.
//
//	make FOLDER ARCH OUT AGENT-TAG SERVER-TAG
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/internal/image"
)

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: make FOLDER ARCH OUT AGENT-TAG SERVER-TAG")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(folder, arch, out, agent, server string) error {
	a, err := image.Agent(agent, arch, folder)
	if err != nil {
		return err
	}
	c, err := image.Cox(server, arch, folder)
	if err != nil {
		return err
	}
	for name, i := range map[string]*image.Image{"coxswain-agent": a, "coxswain": c} {
		if err := i.Write(filepath.Join(out, name+"-"+arch+".tar")); err != nil {
			return err
		}
	}
	return nil
}
