package archtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// maxWords is how many words a page under docs may have.
const maxWords = 2500

var (
	linkForm    = regexp.MustCompile(`\]\(([^)\s#]*)(#[^)\s]*)?\)`)
	mentionForm = regexp.MustCompile(`(?:^|[^\w./-])(docs/[\w./-]+\.(?:md|json|svg))`)
	codeForm    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|(?m)^    .*$")
	tagForm     = regexp.MustCompile(`<[^>]*>|\[([^\]]*)\]\([^)]*\)`)
)

// repositoryFiles returns the tracked files and those that are about to be.
func repositoryFiles(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// TestPagesAreShort holds pages to a length that a person reads.
func TestPagesAreShort(t *testing.T) {
	for _, name := range repositoryFiles(t) {
		if !strings.HasPrefix(name, "docs/") || path.Ext(name) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // removed and not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := len(strings.Fields(string(text))); n > maxWords {
			t.Errorf("%s has %d words, more than %d: make two pages of it", name, n, maxWords)
		}
	}
}

// TestPagesAreListed looks for each page in docs/README.md, which the site's navigation is made
// of. The pages of commands are listed by docs/reference/cli.md; design notes are history.
func TestPagesAreListed(t *testing.T) {
	list, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range repositoryFiles(t) {
		page, below := strings.CutPrefix(name, "docs/")
		if !below || path.Ext(name) != ".md" || page == "README.md" || strings.HasPrefix(page, "reference/cli/") || strings.HasPrefix(page, "explanation/design/") {
			continue
		}
		if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
			continue // removed and not committed
		}
		if !bytes.Contains(list, []byte("]("+page+"): ")) {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}

// TestLinksLead follows the links between the pages of the repository, and the names of pages in
// sources and messages.
func TestLinksLead(t *testing.T) {
	anchors := map[string]map[string]bool{}
	anchorsOf := func(name string) map[string]bool {
		if anchors[name] == nil {
			text, err := os.ReadFile(filepath.Join("../..", name))
			if err != nil {
				t.Fatal(err)
			}
			anchors[name] = headingAnchors(string(text))
		}
		return anchors[name]
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join("../..", name))
		return err == nil
	}
	for _, name := range repositoryFiles(t) {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil || bytes.IndexByte(text, 0) >= 0 || strings.HasPrefix(name, "internal/archtest/") {
			continue
		}
		for _, m := range mentionForm.FindAllStringSubmatch(string(text), -1) {
			if !exists(m[1]) {
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
		if path.Ext(name) != ".md" {
			continue
		}
		for _, m := range linkForm.FindAllStringSubmatch(codeForm.ReplaceAllString(string(text), ""), -1) {
			target, anchor := m[1], strings.TrimPrefix(m[2], "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			switch {
			case !exists(file):
				t.Errorf("%s links to %s, which is not there", name, target)
			case anchor != "" && path.Ext(file) == ".md" && !anchorsOf(file)[anchor]:
				t.Errorf("%s links to #%s in %s, which has no such heading", name, anchor, file)
			}
		}
	}
}

// headingAnchors returns the anchors that GitHub gives to the headings of a page.
func headingAnchors(text string) map[string]bool {
	all := map[string]bool{}
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		heading := strings.TrimLeft(line, "#")
		if fenced || heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		var b strings.Builder
		for _, r := range strings.ToLower(strings.TrimSpace(tagForm.ReplaceAllString(heading, "$1"))) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				b.WriteRune(r)
			}
		}
		anchor := b.String()
		for n := 1; all[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", b.String(), n)
		}
		all[anchor] = true
	}
	return all
}

// TestTroubleshootingIsTrue looks for the messages that docs/troubleshooting.md explains: each of
// their parts is in a source. Messages of other programs and numbers are exempt.
func TestTroubleshootingIsTrue(t *testing.T) {
	theirs := []string{"Host key verification failed", "exit code 118"}
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, name := range repositoryFiles(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			continue // removed and not committed
		}
		sources.Write(text)
	}
	all := sources.String()
	headings := regexp.MustCompile("(?m)^### `(.*)`$").FindAllStringSubmatch(string(page), -1)
	if len(headings) < 20 {
		t.Errorf("the page explains %d messages", len(headings))
	}
	for _, m := range headings {
		if slices.Contains(theirs, m[1]) {
			continue
		}
		for part := range strings.SplitSeq(m[1], "…") {
			if part = strings.Trim(part, " :,"); part != "" && !strings.Contains(all, part) {
				t.Errorf("no source says %q, of the message %q", part, m[1])
			}
		}
	}
}
