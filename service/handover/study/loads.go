package study

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Request is one request of a recorded hour.
type Request struct {
	At          time.Duration // after the beginning of the hour
	Read, Write int           // tokens
}

// Rates at which one GPU works, in tokens a second. They are assumptions, near a dense model of 70 billion
// parameters on GPUs of 80 GB; what a study needs of them is how long contexts weigh beside long answers.
const (
	ReadRate  = 2500.0
	WriteRate = 300.0
)

// Work is the GPU-seconds of a request.
func (r *Request) Work() float64 {
	return float64(r.Read)/ReadRate + float64(r.Write)/WriteRate
}

// hour is the length of a recorded hour; what was recorded after it is left out.
const hour = time.Hour

// ReadAzure reads Microsoft's AzureLLMInferenceTrace_conv.csv (2023), compressed with gzip.
func ReadAzure(path string) ([]Request, error) {
	var first time.Time
	return readLines(path, func(no int, text string) (Request, error) {
		fields := strings.Split(text, ",")
		if no == 1 || len(fields) != 3 {
			return Request{}, nil
		}
		at, err := time.Parse("2006-01-02 15:04:05.0000000", fields[0])
		if err != nil {
			return Request{}, err
		}
		if first.IsZero() {
			first = at
		}
		read, err := strconv.Atoi(fields[1])
		if err != nil {
			return Request{}, err
		}
		write, err := strconv.Atoi(strings.TrimSpace(fields[2]))
		return Request{at.Sub(first), read, write}, err
	})
}

// ReadMooncake reads Moonshot's mooncake conversation trace, a JSON object a line, compressed with gzip.
// That requests share prefixes is left out.
func ReadMooncake(path string) ([]Request, error) {
	return readLines(path, func(_ int, text string) (Request, error) {
		var x struct {
			Timestamp    int64 `json:"timestamp"`
			InputLength  int   `json:"input_length"`
			OutputLength int   `json:"output_length"`
		}
		err := json.Unmarshal([]byte(text), &x)
		return Request{time.Duration(x.Timestamp) * time.Millisecond, x.InputLength, x.OutputLength}, err
	})
}

func readLines(path string, parse func(no int, text string) (Request, error)) ([]Request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	var out []Request
	in := bufio.NewReader(z)
	for no := 1; ; no++ {
		text, err := in.ReadString('\n')
		if text = strings.TrimSpace(text); text != "" {
			r, err := parse(no, text)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", filepath.Base(path), no, err)
			}
			if r.Read+r.Write > 0 && r.At < hour {
				out = append(out, r)
			}
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
}

// InventHour invents an hour of requests, so many a second, for tests without traces.
func InventHour(seed uint64, rate float64, read, write int) []Request {
	draw := rand.New(rand.NewPCG(seed, 7))
	var out []Request
	for at := 0.0; ; {
		if at += draw.ExpFloat64() / rate; at >= hour.Seconds() {
			return out
		}
		spread := math.Exp(draw.NormFloat64()*0.7 - 0.245)
		out = append(out, Request{time.Duration(at * float64(time.Second)), 1 + int(float64(read)*spread), 1 + int(float64(write)*spread)})
	}
}

// Load is the requests of a service over a time, by ticks.
type Load struct {
	Count []float64 // requests that come in a tick
	Work  []float64 // GPU-seconds of these
}

// Tick is the step of time in which services are followed.
const Tick = 10 * time.Second

// Days makes days of a recorded hour. At its peak (an hour of the day) the load is so many GPUs at work
// in the mean; at the opposite hour it is the part low of that. Each hour is the recorded one, turned by a
// random time and thinned or multiplied at random.
func Days(recorded []Request, days int, peakGPUs, low, peakHour float64, seed uint64) Load {
	draw := rand.New(rand.NewPCG(seed, 11))
	ticks := int(time.Duration(days) * 24 * time.Hour / Tick)
	out := Load{make([]float64, ticks), make([]float64, ticks)}
	work := 0.0
	for i := range recorded {
		work += recorded[i].Work()
	}
	peak := peakGPUs * hour.Seconds() / work
	for h := range days * 24 {
		turn := time.Duration(draw.Int64N(int64(hour)))
		for i := range recorded {
			r := &recorded[i]
			at := time.Duration(h)*hour + (r.At+turn)%hour
			phase := 2 * math.Pi * (at.Hours() - peakHour) / 24
			times := peak * (low + (1-low)*(1+math.Cos(phase))/2)
			n := math.Floor(times)
			if draw.Float64() < times-n {
				n++
			}
			out.Count[at/Tick] += n
			out.Work[at/Tick] += n * r.Work()
		}
	}
	return out
}
