package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// BenchmarkSubmit is 16 clients with distinct 4 KB scripts and full environments on
// a unix socket, against a control plane that keeps nothing durable. The clients
// send prepared bytes; what they cost is in cpu-µs/op too.
func BenchmarkSubmit(b *testing.B) {
	p := servertest.NewPlane()
	r := start(b, p, func(c *Config) { c.Log = nil })
	bodies := make([][]byte, 64)
	for i := range bodies {
		s := benchRequest(i)
		js, err := json.Marshal(s)
		if err != nil {
			b.Fatal(err)
		}
		bodies[i] = fmt.Appendf(nil, "POST /v1/jobs HTTP/1.1\r\nHost: cox\r\nContent-Type: application/json\r\n%s: 1.0\r\nContent-Length: %d\r\n\r\n%s", api.VersionHeader, len(js), js)
	}
	flood(b, func() (io.ReadWriteCloser, error) { return net.Dial("unix", r.Socket) }, bodies)
}

// flood sends b.N requests on 16 connections.
func flood(b *testing.B, dial func() (io.ReadWriteCloser, error), bodies [][]byte) {
	b.Helper()
	b.SetBytes(int64(len(bodies[0])))
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	before := cpu()
	b.ResetTimer()
	for range 16 {
		wg.Go(func() {
			conn, err := dial()
			if err != nil {
				b.Error(err)
				return
			}
			defer conn.Close()
			br := bufio.NewReader(conn)
			for {
				n := left.Add(-1)
				if n < 0 {
					return
				}
				if _, err := conn.Write(bodies[int(n)%len(bodies)]); err != nil {
					b.Error(err)
					return
				}
				resp, err := http.ReadResponse(br, nil)
				if err != nil || resp.StatusCode != 201 {
					b.Errorf("%v %v", resp, err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

func benchRequest(i int) *api.Submit {
	s := &api.Submit{Form: api.FormSbatch, File: "train.sbatch", Dir: "/home/anna/run", Host: "login1"}
	s.Text = "#!/bin/bash\n#SBATCH --job-name=bench --nodes=2 --ntasks-per-node=1\n#SBATCH --hold -t 10 -o out-%j\n" + fmt.Sprintf("# %d\n", i)
	s.Text += string(bytes.Repeat([]byte("echo \"some line of a script\" | tee log\n"), (4096-len(s.Text))/39))
	for k := range 60 {
		s.Environ = append(s.Environ, fmt.Sprintf("VARIABLE_%d=/some/value/of/a/path/%d:/usr/local/bin:/usr/bin", k, i))
	}
	return s
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
