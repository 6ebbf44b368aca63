package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Job is one record.
type Job struct {
	ID     int64
	Submit time.Duration // after the first submission of the trace
	Run    time.Duration // how long it ran
	Limit  time.Duration // what it asked for; 0: the trace does not say
	Waited time.Duration // as it was recorded; negative: the trace does not say
	CPUs   int           // processors; 0: the trace counts GPUs
	GPUs   int
	Milli  int // thousandths of its one GPU, if it takes less than one; 0: whole ones
	User   string
	Group  string // virtual cluster, project or group
	Class  string // what the trace says of its kind: "strict", "LS"
	Model  string // of its GPUs or of what it trains
	Line   int    // where it stands
}

// Log is a trace.
type Log struct {
	Name   string // the file's
	Format string
	Jobs   []Job     // by submission, then as they stand
	Start  time.Time // of the first submission; zero: the trace does not say
	Procs  int       // of the machine; 0: the trace does not say
	Left   int       // records that could not have run: no width or no run time
}

// Error says where a trace is not what its format says.
type Error struct {
	File  string
	Line  int
	Field string // its name; empty: the line as a whole
	What  string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.What)
	}
	return fmt.Sprintf("%s:%d: field %s: %s", e.File, e.Line, e.Field, e.What)
}

// longest bounds a line.
const longest = 1 << 20

// Open reads a trace from a file, compressed with gzip or not. What its format is
// follows from the name's ending (.swf) or from the heading of its columns.
func Open(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(filepath.Base(path), f)
}

// Read reads a trace. The name tells an SWF file and stands in errors.
func Read(name string, r io.Reader) (*Log, error) {
	r, err := uncompress(name, r)
	if err != nil {
		return nil, err
	}
	read := readRows
	if strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".swf") {
		read = readSWF
	}
	log, err := read(name, r)
	if err != nil {
		return nil, err
	}
	if len(log.Jobs) == 0 {
		return nil, &Error{File: name, Line: 1, What: "there is no job in it that could have run"}
	}
	log.sortJobs()
	return log, nil
}

// uncompress uncompresses what is compressed.
func uncompress(name string, r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	if head, _ := b.Peek(2); !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, &Error{File: name, Line: 1, What: "it is not whole: " + err.Error()}
	}
	return z, nil
}

// sortJobs puts jobs in order and lets time begin with the first.
func (l *Log) sortJobs() {
	slices.SortStableFunc(l.Jobs, func(a, b Job) int { return int(signOf(a.Submit - b.Submit)) })
	first := l.Jobs[0].Submit
	for i := range l.Jobs {
		l.Jobs[i].Submit -= first
	}
	if !l.Start.IsZero() {
		l.Start = l.Start.Add(first)
	}
}

func signOf(d time.Duration) time.Duration {
	switch {
	case d < 0:
		return -1
	case d > 0:
		return 1
	}
	return 0
}

// addJob takes a record up, or counts it as left out.
func (l *Log) addJob(j Job) {
	if j.Run <= 0 || j.CPUs+j.GPUs <= 0 || j.Submit < 0 {
		l.Left++
		return
	}
	l.Jobs = append(l.Jobs, j)
}
