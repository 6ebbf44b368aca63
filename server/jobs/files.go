package jobs

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// OwnFiles is what the engine of the server's own pool does about the files of jobs.
type OwnFiles interface {
	engine.UploadReceiver
	engine.UploadKeeper
	engine.FilePacker
}

type filesInput struct {
	JobPath
	Path string `query:"path" doc:"file or directory below the working directory; left out: all of a directory that came with the job"`
}

func (s *Service) registerFiles() {
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{job}/files", Verb: auth.SeeLogs, ID: "files", Tag: "jobs", Owned: true, Lasts: true,
		Media: []string{"application/gzip"}, Summary: "Fetch files of a job's working directory",
		About: "A tar in gzip, with names below the working directory. The trailer " + api.FilesEnd + " is \"end\" where all of it came, else the error.",
	}, func(c *call, in *filesInput) error { return s.serveFiles(c, in) })
}

// poolFiles fetches files of jobs of a pool; nil: its engine cannot.
func (s *Service) poolFiles(pool string) engine.FilePacker {
	e := s.cfg.Plane.AddedEngine(pool)
	if e == nil && s.cfg.Files != nil {
		return s.cfg.Files
	}
	p, _ := e.(engine.FilePacker)
	return p
}

func (s *Service) serveFiles(c *call, in *filesInput) error {
	v, err := c.findJob(in.Job, auth.SeeLogs)
	if err != nil {
		return err
	}
	pool := v.Pool
	if pool == "" {
		pool = v.Job.Spec.Pool
	}
	from := s.poolFiles(pool)
	if from == nil {
		return fault.New(fault.Unsupported, "files of jobs in pool %s cannot be fetched: its engine does not give them", pool).
			Advise("have the job write results to a place that you reach, such as a shared file system; in pods, below one of the pool's paths or to an object store")
	}
	path := in.Path
	if path == "" {
		path = "."
	}
	if err := s.packs.beginPack(&c.ID, c.ID.UID != 0 && c.ID.UID != s.Self.UID); err != nil {
		return err
	}
	defer s.packs.endPack(c.ID.UID)
	ctx, cancel := c.streamContext()
	defer cancel()
	h := c.W.Header()
	out := &archiveWriter{logWriter: logWriter{c: c, ctl: http.NewResponseController(c.W.ResponseWriter), stall: s.cfg.Stall}, begin: func() {
		h.Set("Content-Type", "application/gzip")
		h.Set("Trailer", api.FilesEnd)
	}}
	err = from.PackFiles(ctx, &v.Job, path, out)
	switch {
	case err != nil && out.begin != nil:
		return err // nothing was written
	case err != nil:
		h.Set(api.FilesEnd, strings.ReplaceAll(err.Error(), "\n", " "))
	default:
		h.Set(api.FilesEnd, "end")
	}
	return nil
}

// Bounds of archives that are packed at once.
const (
	maxUserPacks = 2 // for one user
	maxPacks     = 8 // for all; root and the server's own user are not counted out
)

// packLimit bounds how many archives of files are packed at once. It is safe for concurrent use.
type packLimit struct {
	mu  sync.Mutex
	of  map[uint32]int // by user
	all int
}

// beginPack counts an archive in, or refuses it. endPack counts it out.
func (l *packLimit) beginPack(id *auth.Identity, bounded bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case bounded && l.of[id.UID] >= maxUserPacks:
		return fault.New(fault.Unavailable, "user %s fetches files of %d jobs, and may fetch no more at once", id.Name, maxUserPacks).
			Advise("try again when one of them has ended")
	case bounded && l.all >= maxPacks:
		return fault.New(fault.Unavailable, "the server packs files of %d jobs, and packs no more at once", l.all).Advise("try again in a moment")
	}
	if l.of == nil {
		l.of = map[uint32]int{}
	}
	l.of[id.UID]++
	l.all++
	return nil
}

func (l *packLimit) endPack(uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.of[uid]--; l.of[uid] == 0 {
		delete(l.of, uid)
	}
}

// archiveWriter sends an archive. What is to be said of it is said before its first byte.
type archiveWriter struct {
	logWriter
	begin func() // nil: it has begun
}

func (w *archiveWriter) Write(b []byte) (int, error) {
	if w.begin != nil {
		w.begin()
		w.begin = nil
	}
	return w.logWriter.Write(b)
}

// uploadKeepers are the engines that keep directories of jobs.
func (s *Service) uploadKeepers() (out []engine.UploadKeeper) {
	if s.cfg.Files != nil {
		out = append(out, s.cfg.Files)
	}
	for _, p := range s.cfg.Plane.Pools() {
		if k, ok := s.cfg.Plane.AddedEngine(p.Name).(engine.UploadKeeper); ok {
			out = append(out, k)
		}
	}
	return out
}

// sweepTrees removes directories that came with jobs some time after these have ended, and those of
// jobs that nobody knows any more.
func (s *Service) sweepTrees(ctx context.Context) (err error) {
	for _, k := range s.uploadKeepers() {
		ids, listed := k.KeptUploads(ctx)
		err = errors.Join(err, listed)
		for _, id := range ids {
			if s.isTreeOver(ctx, id) {
				err = errors.Join(err, discardTree(ctx, k, id))
			}
		}
	}
	return err
}

// leastRoom is how many bytes have to be there for further directories, else those of ended jobs go.
const leastRoom = 1 << 30

// leastKeep is how long after its end the directory of a job stays all the same: its user has time to
// fetch results, whatever others send.
const leastKeep = time.Hour

// makeTreeRoom removes directories of ended jobs, that which ended first first, where there is too little
// room for others.
func (s *Service) makeTreeRoom(ctx context.Context) error {
	for _, k := range s.uploadKeepers() {
		left, err := k.UploadRoom(ctx)
		if err != nil || left >= leastRoom {
			continue // not asked for now, or enough
		}
		ids, err := k.KeptUploads(ctx)
		if err != nil {
			return err
		}
		var ended []job.Job
		for _, id := range ids {
			if v, err := s.cfg.Plane.Job(ctx, id); err == nil && v.Job.State.Final() && !v.Job.Ended.IsZero() && s.cfg.Now().Sub(v.Job.Ended) >= leastKeep {
				ended = append(ended, v.Job)
			}
		}
		slices.SortFunc(ended, func(a, b job.Job) int { return a.Ended.Compare(b.Ended) })
		for i := range ended {
			if err := discardTree(ctx, k, ended[i].ID); err != nil {
				return err
			}
			s.Log.Info("the directory of an ended job makes room", "job", ended[i].Name())
			if left, err = k.UploadRoom(ctx); err != nil || left >= leastRoom {
				break
			}
		}
	}
	return nil
}

// discardTree removes the directory of a job, but for one that has an attempt.
func discardTree(ctx context.Context, k engine.UploadKeeper, id job.ID) error {
	if err := k.DiscardUpload(ctx, id); err != nil && fault.KindOf(err) != fault.Conflict {
		return err
	}
	return nil
}

// isTreeOver reports whether the directory that came with a job is to go.
func (s *Service) isTreeOver(ctx context.Context, id job.ID) bool {
	v, err := s.cfg.Plane.Job(ctx, id)
	if err != nil {
		return fault.KindOf(err) == fault.NotFound
	}
	return v.Job.State.Final() && !v.Job.Ended.IsZero() && s.cfg.Now().Sub(v.Job.Ended) > s.treeKeep()
}

func (s *Service) treeKeep() time.Duration {
	if s.cfg.UploadKeep <= 0 {
		return math.MaxInt64 // with the job's record
	}
	return s.cfg.UploadKeep
}
