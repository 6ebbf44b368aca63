package localrun

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// tail reads what is added to a file, line by line. A file that does not exist yet
// is an empty one.
type tail struct {
	path string
	off  int64
	part []byte // a line without its end
	bad  bool   // it could not be read, and that was said

	stream *logStream // of a server, which reads the file; nil: it is read here
}

// maxLine bounds a line that is shown; a longer one is shown in pieces.
const maxLine = 64 << 10

// readAtOnce bounds what one read takes in, so that a job that writes without end
// cannot fill our memory.
const readAtOnce = 4 << 20

// readLines returns the lines added since the last call, without their ends. With last
// set, an unfinished line at the end of the file is returned too.
func (t *tail) readLines(last bool) ([]string, error) {
	if t.stream != nil {
		return t.stream.readLines(last)
	}
	st, err := os.Stat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular(): // opening a pipe would wait for its writer, and take from its reader
		return nil, nil
	}
	f, err := os.Open(t.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st.Size() < t.off { // truncated and begun anew
		t.off, t.part = 0, nil
	}
	if _, err := f.Seek(t.off, io.SeekStart); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, readAtOnce))
	if err != nil {
		return nil, err
	}
	t.off += int64(len(data))
	t.part = append(t.part, data...)
	var lines []string
	for {
		i := bytes.IndexByte(t.part, '\n')
		if (i < 0 || i > maxLine) && len(t.part) >= maxLine {
			lines, t.part = append(lines, string(t.part[:maxLine])), t.part[maxLine:]
			continue
		}
		if i < 0 {
			break
		}
		lines, t.part = append(lines, string(t.part[:i])), t.part[i+1:]
	}
	if last && len(data) < readAtOnce && len(t.part) > 0 {
		lines, t.part = append(lines, string(t.part)), nil
	}
	return lines, nil
}

// source is who wrote a line.
type source struct {
	step, rank int
	node       string
}

// attribution finds who wrote a line of the job's output. Each rank's output is
// also copied to a log of its own, and there first; so a line of the job's output
// that a rank wrote is always in that rank's log by then, and one that is in no
// log was written by the batch script itself. Of several ranks that wrote the same
// text, the one that wrote it first is named first.
type attribution struct {
	waiting map[string][]source
	held    int
}

// heldLines bounds the memory for lines that never come out, as when a script
// sends the output of srun elsewhere.
const heldLines = 100_000

func newAttribution() *attribution { return &attribution{waiting: map[string][]source{}} }

// noteLine notes a line of a rank's log.
func (a *attribution) noteLine(line string, by source) {
	if a.held >= heldLines {
		a.waiting, a.held = map[string][]source{}, 0
	}
	a.waiting[line] = append(a.waiting[line], by)
	a.held++
}

// writerOf returns who wrote a line of the job's output; ok is false for the batch script.
func (a *attribution) writerOf(line string) (by source, ok bool) {
	for _, text := range []string{line, stripLabel(line)} {
		if who := a.waiting[text]; len(who) > 0 {
			a.held--
			if len(who) == 1 {
				delete(a.waiting, text)
			} else {
				a.waiting[text] = who[1:]
			}
			return who[0], true
		}
	}
	return source{}, false
}

// stripLabel removes the "3: " that srun --label puts before a line.
func stripLabel(line string) string {
	label, text, ok := strings.Cut(line, ": ")
	if !ok || strings.Trim(label, " 0123456789") != "" {
		return line
	}
	return text
}
