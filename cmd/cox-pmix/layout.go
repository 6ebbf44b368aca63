package main

import (
	"encoding/binary"
	"unsafe"
)

// The C structures of libpmix, of which the layout is the same in versions 4 and 5 on every
// 64-bit Linux (TestLayout compares it with the headers).
const (
	sizeOfKey   = 512 // pmix_key_t
	sizeOfSpace = 256 // pmix_nspace_t
	sizeOfProc  = 260 // pmix_proc_t: the namespace, then the rank
	sizeOfValue = 32  // pmix_value_t: the type, at 8 the value
	sizeOfInfo  = 552 // pmix_info_t: the key, flags, at 520 the value
	sizeOfArray = 24  // pmix_data_array_t: the type, at 8 the length, at 16 the elements

	valueInInfo = 520
	dataInValue = 8
)

// Types of values (pmix_data_type_t).
const (
	typeBool   = 1
	typeString = 3
	typeInt    = 6
	typeUint16 = 13
	typeUint32 = 14
	typeInfo   = 24
	typeArray  = 39
	typeRank   = 40
	typeRegex  = 49
)

// Keys of values.
const (
	keyHostName    = "pmix.hname"
	keyServerSpace = "pmix.srv.nspace"
	keyServerRank  = "pmix.srv.rank"
	keyServerTmp   = "pmix.srvr.tmpdir"
	keySystemTmp   = "pmix.sys.tmpdir"

	keyJobID       = "pmix.jobid"
	keyUniverse    = "pmix.univ.size"
	keyJobSize     = "pmix.job.size"
	keyMaxProcs    = "pmix.max.size"
	keyNumNodes    = "pmix.num.nodes"
	keyNumApps     = "pmix.job.napps"
	keyLocalSize   = "pmix.local.size"
	keyNodeSize    = "pmix.node.size"
	keyLocalPeers  = "pmix.lpeers"
	keyLocalLeader = "pmix.lldr"
	keyNodeMap     = "pmix.nmap"
	keyProcMap     = "pmix.pmap"
	keySpawned     = "pmix.spawned"
	keyTmpDir      = "pmix.tmpdir"
	keySpaceDir    = "pmix.nsdir"
	keyProcDir     = "pmix.pdir"
	keyTmpCleaned  = "pmix.tdir.rmclean"

	keyProcData   = "pmix.pdata"
	keyRank       = "pmix.rank"
	keyAppNumber  = "pmix.appnum"
	keyGlobalRank = "pmix.grank"
	keyAppRank    = "pmix.apprank"
	keyAppLeader  = "pmix.aldr"
	keyAppSize    = "pmix.app.size"
	keyAppArray   = "pmix.app.arr"
	keyLocalRank  = "pmix.lrank"
	keyNodeRank   = "pmix.nrank"
	keyNodeID     = "pmix.nodeid"
)

// arena keeps what C structures point to. Go's memory does not move.
type arena struct{ kept [][]byte }

// alloc is zeroed memory, aligned for any value.
func (a *arena) alloc(n int) []byte {
	words := make([]uint64, (n+7)/8+1)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[:n:n]
	a.kept = append(a.kept, b)
	return b
}

// text is a C string.
func (a *arena) text(s string) uintptr {
	b := a.alloc(len(s) + 1)
	copy(b, s)
	return addressOf(b)
}

// info is one pmix_info_t to be made.
type info struct {
	key   string
	value any // bool, string, regex, int32, uint16, uint32, rank, []info
}

// Values of types that Go has no word for.
type (
	rank  uint32
	regex uintptr // what PMIx_generate_regex gave
)

// infos makes an array of pmix_info_t.
func (a *arena) infos(list []info) []byte {
	all := a.alloc(len(list) * sizeOfInfo)
	for i, v := range list {
		at := all[i*sizeOfInfo:]
		copy(at[:sizeOfKey-1], v.key)
		a.putValue(at[valueInInfo:valueInInfo+sizeOfValue], v.value)
	}
	return all
}

// putValue fills in a pmix_value_t.
func (a *arena) putValue(at []byte, v any) {
	data := at[dataInValue:]
	kind := uint16(0)
	switch v := v.(type) {
	case bool:
		kind = typeBool
		if v {
			data[0] = 1
		}
	case string:
		kind = typeString
		binary.NativeEndian.PutUint64(data, uint64(a.text(v)))
	case regex:
		kind = typeRegex // a byte object holds it: pmix_byte_object_t begins with the pointer
		binary.NativeEndian.PutUint64(data, uint64(v))
	case int32:
		kind = typeInt
		binary.NativeEndian.PutUint32(data, uint32(v))
	case uint16:
		kind = typeUint16
		binary.NativeEndian.PutUint16(data, v)
	case uint32:
		kind = typeUint32
		binary.NativeEndian.PutUint32(data, v)
	case rank:
		kind = typeRank
		binary.NativeEndian.PutUint32(data, uint32(v))
	case []info:
		kind = typeArray
		array := a.alloc(sizeOfArray)
		binary.NativeEndian.PutUint16(array, typeInfo)
		binary.NativeEndian.PutUint64(array[8:], uint64(len(v)))
		binary.NativeEndian.PutUint64(array[16:], uint64(addressOf(a.infos(v))))
		binary.NativeEndian.PutUint64(data, uint64(addressOf(array)))
	}
	binary.NativeEndian.PutUint16(at, kind)
}

// proc makes a pmix_proc_t.
func (a *arena) proc(space string, r int) uintptr {
	b := a.alloc(sizeOfProc)
	copy(b[:sizeOfSpace-1], space)
	binary.NativeEndian.PutUint32(b[sizeOfSpace:], uint32(r))
	return addressOf(b)
}

// addressOf is where memory of an arena lies.
func addressOf(b []byte) uintptr {
	if len(b) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&b[0]))
}

// bytesAt is C memory.
func bytesAt(address uintptr, n int) []byte {
	if address == 0 || n == 0 {
		return nil
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), n)
}

// textAt is a C string; "" for a null pointer.
func textAt(address uintptr) string {
	if address == 0 {
		return ""
	}
	n := 0
	for *bytesPointer(address + uintptr(n)) != 0 {
		n++
	}
	return string(bytesAt(address, n))
}

// readPointer reads a pointer in C memory.
func readPointer(address uintptr) uintptr {
	return uintptr(binary.NativeEndian.Uint64(bytesAt(address, 8)))
}

// bytesPointer is a pointer to a byte of C memory.
func bytesPointer(address uintptr) *byte { return *(**byte)(unsafe.Pointer(&address)) }

// readProc reads a pmix_proc_t.
func readProc(address uintptr) (space string, r uint32) {
	b := bytesAt(address, sizeOfProc)
	if b == nil {
		return "", 0
	}
	return textAt(address), binary.NativeEndian.Uint32(b[sizeOfSpace:])
}
