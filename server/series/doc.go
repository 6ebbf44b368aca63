// Package series keeps how the use of CPUs, memory and devices of a job went over its time.
//
// A Recorder asks the engines of running jobs what the jobs have used so far, and DCGM exporters how busy
// their GPUs are, and adds that to one Series for each job. A Series has equal intervals, at most MaxPoints:
// when it is full, two intervals become one, so a series of an hour and one of a month have about the same
// size. The intervals are short in the first minutes, and a job is asked once for each.
//
// Of CPUs and GPUs, an interval has the average, since what is asked for is a count since the start; of memory
// the largest value that was seen. A time in which nobody measured is unknown, which is not zero. If the server
// was away, the average of CPUs is that of the whole time since the last answer.
//
// A series is of the last attempt of its job. It is a file of its own, outside of the journal: it may be lost
// (Recorder.Run writes each every few minutes and at its end), and it is removed when it is older than the
// history or when all of them need more room than the configuration gives them, the oldest first.
package series
