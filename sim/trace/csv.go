package trace

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// form is a published CSV form: its columns, and what a row says.
type form struct {
	name    string
	columns string // the heading
	row     func(v *values) Job
}

// forms are the forms that are read. They are told apart by their headings.
var forms = []form{
	{ // Muri (SIGCOMM 2022): milliseconds; how long a job runs follows from its iterations
		name:    "muri",
		columns: "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,resource_time_1,resource_time_2,priority",
		row:     parseMuri,
	},
	{ // Chronus (SoCC 2021)
		name:    "chronus",
		columns: "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type",
		row: func(v *values) Job {
			return Job{ID: v.parseWhole(0), Group: v.fields[1], GPUs: v.parseCount(2), Submit: v.parseSeconds(3), Model: v.fields[5], Run: v.parseSeconds(6), Class: v.fields[11], Waited: -1}
		},
	},
	{ // Sia (SOSP 2023)
		name:    "sia",
		columns: "timestamp,duration,num_gpus,gpu_time,cluster",
		row: func(v *values) Job {
			v.parseNumber(3)
			at := v.parseInstant(0, time.DateTime)
			return Job{ID: int64(v.no - 1), Submit: time.Duration(at.UnixNano()), Run: v.parseSeconds(1), GPUs: v.parseCount(2), Group: v.fields[4], Waited: -1}
		},
	},
	{ // lumos: Philly
		name:    "lumos-philly",
		columns: ",run_time,wait_time,submit_time,gpu_num",
		row: func(v *values) Job {
			return Job{ID: v.parseWhole(0) + 1, Run: v.parseSeconds(1), Waited: v.parseSeconds(2), Submit: v.parseSeconds(3), GPUs: v.parseCount(4)}
		},
	},
	{ // lumos: Mira
		name:    "lumos-mira",
		columns: ",job,user,project,state,gpu_num,cpu_num,node_num,submit_time,wait_time,run_time,wall_time,node_hour,new_status",
		row: func(v *values) Job {
			v.parseNumber(12)
			v.parseCount(5)
			return Job{
				ID: v.parseWhole(0) + 1, User: v.fields[2], Group: v.fields[3], CPUs: v.parseCount(6), Submit: v.parseSeconds(8),
				Waited: v.parseSeconds(9), Run: v.parseSeconds(10), Limit: v.parseSeconds(11), Class: v.fields[13],
			}
		},
	},
	{ // openb (clusterdata 2023) with times
		name:    "openb",
		columns: "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
		row: func(v *values) Job {
			p := parsePod(v)
			created, deleted := v.parseSeconds(8), v.parseSeconds(9)
			j := Job{ID: int64(v.no - 1), Submit: created, Run: deleted - created, Class: v.fields[6], Model: p.Models, GPUs: p.GPUs, Waited: -1}
			if v.fields[10] != "" {
				scheduled := v.parseSeconds(10)
				j.Waited, j.Run = scheduled-created, deleted-scheduled
			}
			if p.GPUs == 1 && p.Milli < 1000 {
				j.Milli = p.Milli
			}
			j.CPUs = (p.CPU + 999) / 1000
			return j
		},
	},
}

func parseMuri(v *values) Job {
	for _, i := range []int{5, 7, 9, 10, 11} {
		v.parseNumber(i)
	}
	// An iteration is measured in milliseconds and takes 1.5 % more with what
	// surrounds it; duration is what the original trace said.
	run := time.Duration(v.parseWhole(3)) * time.Duration(v.parseWhole(8)) * time.Millisecond * 1015 / 1000
	v.parseNumber(6)
	return Job{
		ID: v.parseWhole(0) + 1, GPUs: v.parseCount(1), Submit: v.parseSpan(2, time.Millisecond), Run: run,
		Model: v.fields[4], Class: v.fields[12], Waited: -1,
	}
}

// Formats lists what is read, for messages.
func Formats() []string {
	out := []string{"swf"}
	for _, f := range forms {
		out = append(out, f.name)
	}
	return out
}

// readRows reads one of the CSV forms. None of them quotes a field.
func readRows(name string, r io.Reader) (*Log, error) {
	in := newLines(name, r)
	heading, _ := in.next()
	heading = strings.TrimRight(heading, "\r")
	at := slices.IndexFunc(forms, func(f form) bool { return f.columns == heading })
	if at < 0 {
		if err := in.readError(); err != nil {
			return nil, err
		}
		in.no = 1
		return nil, in.failAt("", "this is not the heading of a trace that cox reads ("+strings.Join(Formats(), ", ")+"); the name of an SWF file must end with .swf or .swf.gz")
	}
	log := &Log{Name: name, Format: forms[at].name}
	err := readTable(in, heading, func(v *values) error {
		j := forms[at].row(v)
		j.Line = in.no
		if v.err == nil {
			log.addJob(j)
		}
		return v.err
	})
	return log, err
}

// readTable calls f for each line below the heading.
func readTable(in *lines, heading string, f func(*values) error) error {
	v := &values{lines: in, names: strings.Split(heading, ",")}
	if v.names[0] == "" {
		v.names[0] = "1" // it has no name
	}
	for {
		text, ok := in.next()
		if !ok {
			return in.readError()
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if v.fields = strings.Split(strings.TrimRight(text, "\r"), ","); len(v.fields) != len(v.names) {
			return in.failAt("", "a row has "+strconv.Itoa(len(v.names))+" fields, this one has "+strconv.Itoa(len(v.fields)))
		}
		if err := f(v); err != nil {
			return err
		}
	}
}
