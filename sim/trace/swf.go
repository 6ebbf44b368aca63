package trace

import (
	"io"
	"strconv"
	"strings"
	"time"
)

// swfNames are the fields of a record of the Standard Workload Format, version 2.2
// (Parallel Workloads Archive). -1 stands for what is not known.
var swfNames = []string{
	"1 job number", "2 submit time", "3 wait time", "4 run time", "5 allocated processors", "6 average CPU time",
	"7 used memory", "8 requested processors", "9 requested time", "10 requested memory", "11 status", "12 user",
	"13 group", "14 executable", "15 queue", "16 partition", "17 preceding job", "18 think time",
}

// readSWF reads the Standard Workload Format. The width of a job is what it asked for,
// or what it got where that is not known.
func readSWF(name string, r io.Reader) (*Log, error) {
	log := &Log{Name: name, Format: "swf"}
	in := newLines(name, r)
	for {
		text, ok := in.next()
		if !ok {
			return log, in.readError()
		}
		text = strings.TrimSpace(text)
		switch {
		case text == "":
		case text[0] == ';':
			if err := log.readHeading(in, text[1:]); err != nil {
				return nil, err
			}
		default:
			job, err := parseRecord(in, text)
			if err != nil {
				return nil, err
			}
			log.addJob(job)
		}
	}
}

// readHeading reads a comment that says something of the whole.
func (l *Log) readHeading(in *lines, text string) error {
	key, value, _ := strings.Cut(text, ":")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch key {
	case "MaxProcs", "MaxNodes":
		n, err := strconv.Atoi(strings.Fields(value + " x")[0])
		if err != nil || n < 0 {
			return in.failAt(key, strconv.Quote(value)+" is not a number of processors")
		}
		if key == "MaxProcs" || l.Procs == 0 {
			l.Procs = n
		}
	case "UnixStartTime":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return in.failAt(key, strconv.Quote(value)+" is not a time in seconds since 1970")
		}
		if n > 0 {
			l.Start = time.Unix(n, 0).UTC()
		}
	}
	return nil
}

func parseRecord(in *lines, text string) (Job, error) {
	v := &values{lines: in, names: swfNames, fields: strings.Fields(text)}
	if n := len(v.fields); n != len(swfNames) {
		return Job{}, in.failAt("", "a record has 18 fields, this line has "+strconv.Itoa(n))
	}
	for _, i := range []int{5, 6, 9, 13, 14, 15, 16, 17} {
		v.parseNumber(i)
	}
	status := v.parseWhole(10)
	if status < -1 || status > 5 {
		v.markBad(10, "is not a status between -1 and 5")
	}
	job := Job{
		ID: v.parseWhole(0), Submit: v.parseSeconds(1), Waited: v.parseSeconds(2), Run: v.parseSeconds(3),
		CPUs: v.parseCount(7), Limit: max(0, v.parseSeconds(8)), Line: in.no,
		User: knownNumber(v.parseWhole(11)), Group: knownNumber(v.parseWhole(12)),
	}
	if allocated := v.parseCount(4); job.CPUs <= 0 {
		job.CPUs = allocated
	}
	return job, v.err
}

func knownNumber(n int64) string {
	if n < 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
