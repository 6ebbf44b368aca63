// Package hostsfile edits /etc/hosts: Coxswain's blocks in the machine's file, and the copy that
// a virtual node has.
//
// A block begins with "# coxswain begin ID: TEXT" and ends with "# coxswain end ID". Only the
// lines between are Coxswain's; every other byte stays as it is. The file is written in place: a
// rename would detach the private hosts files that running jobs have mounted over it, and fails
// in a container, whose hosts file is a mount. A reader that comes at that moment sees whole
// lines, some of them twice.
//
// Callers serialize their writes; see package nodenet.
package hostsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Machine is the machine's own file.
const Machine = "/etc/hosts"

// Host is one line: an address and its name.
type Host struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

const (
	beginMark = "# coxswain begin "
	endMark   = "# coxswain end "
)

// Block is the text of a block. text says whose it is; both are one line.
func Block(id, text string, hosts []Host) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s: %s\n", beginMark, id, text)
	for _, h := range hosts {
		fmt.Fprintf(&b, "%s\t%s\n", h.Address, h.Name)
	}
	fmt.Fprintf(&b, "%s%s\n", endMark, id)
	return b.String()
}

// Without is a file's text without the block of id; "" stands for every block. A block without
// an end loses its first line only: what follows may be somebody else's.
func Without(text, id string) string {
	var out strings.Builder
	for rest := text; rest != ""; {
		line, after := cutLine(rest)
		if owner, ok := blockOwner(line); ok && (id == "" || owner == id) {
			if skipped, found := skipBlock(after, owner); found {
				rest = skipped
			} else {
				rest = after
			}
			continue
		}
		out.WriteString(line)
		rest = after
	}
	return out.String()
}

// Blocks are the ids of the blocks in a file's text.
func Blocks(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if id, ok := blockOwner(line); ok {
			out = append(out, id)
		}
	}
	return out
}

func cutLine(text string) (line, rest string) {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, ""
}

// blockOwner is the id of the block that a line begins.
func blockOwner(line string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(line, beginMark)
	if !ok {
		return "", false
	}
	id, _, ok = strings.Cut(rest, ":")
	return id, ok
}

// skipBlock is what follows the end of a block.
func skipBlock(text, id string) (rest string, found bool) {
	for text != "" {
		line, after := cutLine(text)
		if strings.TrimRight(line, "\n") == endMark+id {
			return after, true
		}
		if _, begins := blockOwner(line); begins {
			return "", false
		}
		text = after
	}
	return "", false
}

// Names are all names that a file's text gives.
func Names(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		for _, name := range namesOf(line) {
			out[name] = true
		}
	}
	return out
}

func namesOf(line string) []string {
	line, _, _ = strings.Cut(line, "#")
	f := strings.Fields(line)
	return f[min(1, len(f)):]
}

// Merge is the file of a virtual node: the machine's text without Coxswain's blocks and without
// the names that hosts give, and hosts. A line that keeps no name is left out.
func Merge(machine string, hosts []Host) string {
	taken := map[string]bool{}
	for _, h := range hosts {
		taken[h.Name] = true
	}
	var b strings.Builder
	for line := range strings.Lines(Without(machine, "")) {
		names := namesOf(line)
		kept := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return taken[n] })
		switch {
		case len(kept) == len(names):
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
		case len(kept) > 0:
			b.WriteString(strings.Fields(line)[0] + "\t" + strings.Join(kept, " ") + "\n")
		}
	}
	for _, h := range hosts {
		fmt.Fprintf(&b, "%s\t%s\n", h.Address, h.Name)
	}
	return b.String()
}

// Put writes a block into a file, in place of an earlier one of that id.
func Put(path, id, text string, hosts []Host) error {
	return rewrite(path, func(old string) string {
		old = Without(old, id)
		if old != "" && !strings.HasSuffix(old, "\n") {
			old += "\n"
		}
		return old + Block(id, text, hosts)
	})
}

// Remove takes the block of an id out of a file. A file that is not there has none.
func Remove(path, id string) error {
	err := rewrite(path, func(old string) string { return Without(old, id) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// rewrite changes a file in place: first the text, then the length.
func rewrite(path string, change func(string) string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := change(string(old))
	if text == string(old) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Truncate(int64(len(text))), f.Close())
}
