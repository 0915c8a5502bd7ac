package jobdir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/ratelimit"
)

// Mirror saves checkpoints of files in a store for the next holder of the lease. A checkpoint is an object that is put
// once, under a name with its epoch and number, so a late put replaces nothing newer. Its files are put first, and kept
// while it is one of the last two. A new holder puts all files again. Only Check is safe for concurrent use.
type Mirror struct {
	Store Store
	*Lease

	number int64 // number of the last checkpoint
	object int64 // number of the last object
	files  map[string][]part
	last   [2]kept // the last two checkpoints, the newer one second
	swept  bool    // objects of former holders have been deleted
}

type MirrorFile struct {
	Name  string // name in the mirror, separated by slashes
	Path  string // path on this machine; unused if Body is set
	Body  []byte
	Grows bool // the file is only appended to, so saved bytes do not change
}

// part is an object that holds a part of a file.
type part struct {
	Object string `json:"object"`
	Bytes  int64  `json:"bytes"`
	Sum    uint32 `json:"sum"` // CRC-32C
}

// checkpointFile is the content of an object checkpoint.<epoch>.<number>.
type checkpointFile struct {
	Version  int               `json:"version"`
	Nonce    string            `json:"nonce"`
	Folder   string            `json:"folder"`
	Finished bool              `json:"finished,omitempty"`
	Files    map[string][]part `json:"files,omitempty"`
}

type kept struct {
	name    string
	objects []string
}

const (
	mirrorVersion = 1
	// partBytes limits a part of a file. A part is read into memory, and is put again when merged with newer bytes.
	partBytes = 8 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// NewMirror returns a mirror in s. l must be the lease of s.
func NewMirror(s Store, l *Lease) *Mirror {
	return &Mirror{Store: s, Lease: l, files: map[string][]part{}}
}

// Save saves files as a checkpoint; Restore will return folder. After an error, the checkpoint may have been saved.
func (m *Mirror) Save(ctx context.Context, folder string, files []MirrorFile) error {
	if err := m.Check(); err != nil {
		return err
	}
	c := checkpointFile{Version: mirrorVersion, Nonce: Nonce(), Folder: folder, Files: map[string][]part{}}
	for _, f := range files {
		parts, err := m.keep(ctx, f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has been removed, so no checkpoint needs it
		}
		if err != nil {
			return fmt.Errorf("store %s in %s: %w", f.Name, m.Store, err)
		}
		m.files[f.Name] = parts
		c.Files[f.Name] = parts
	}
	return m.put(ctx, c)
}

// Finish records that nothing is left to resume.
func (m *Mirror) Finish(ctx context.Context) error {
	if err := m.Check(); err != nil {
		return err
	}
	return m.put(ctx, checkpointFile{Version: mirrorVersion, Nonce: Nonce(), Finished: true})
}

func (m *Mirror) put(ctx context.Context, c checkpointFile) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	m.number++
	k := kept{name: fmt.Sprintf("checkpoint.%09d.%09d", m.Epoch, m.number)}
	for _, parts := range c.Files {
		for _, p := range parts {
			k.objects = append(k.objects, p.Object)
		}
	}
	if err := m.Store.PutAbsent(ctx, k.name, body); err != nil {
		return fmt.Errorf("store a checkpoint in %s: %w", m.Store, err)
	}
	m.sweep(ctx, k)
	m.last[0], m.last[1] = m.last[1], k
	return nil
}

// sweep deletes objects that neither of the last two checkpoints needs. An object left behind does no harm.
func (m *Mirror) sweep(ctx context.Context, newest kept) {
	old := m.last[0]
	if old.name != "" {
		_ = m.Store.Delete(ctx, old.name)
	}
	for _, o := range old.objects {
		if !slices.Contains(newest.objects, o) && !slices.Contains(m.last[1].objects, o) {
			_ = m.Store.Delete(ctx, o)
		}
	}
	if m.swept {
		return
	}
	m.swept = true
	names, err := m.Store.List(ctx, "")
	if err != nil {
		return
	}
	for _, name := range names {
		var epoch, number int64
		_, notCheckpoint := fmt.Sscanf(name, "checkpoint.%d.%d", &epoch, &number)
		_, notData := fmt.Sscanf(name, "data/%d-%d", &epoch, &number)
		if (notCheckpoint == nil || notData == nil) && epoch < m.Epoch {
			_ = m.Store.Delete(ctx, name)
		}
	}
}

// keep puts the new bytes of a file and returns its parts.
func (m *Mirror) keep(ctx context.Context, f MirrorFile) ([]part, error) {
	parts := m.files[f.Name]
	if f.Body != nil {
		return m.keepBytes(ctx, f.Body, parts)
	}
	if !f.Grows {
		body, err := os.ReadFile(f.Path)
		if err != nil {
			return nil, err
		}
		return m.keepBytes(ctx, body, parts)
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size, at := info.Size(), int64(0)
	for _, p := range parts {
		at += p.Bytes
	}
	if at > size {
		parts, at = nil, 0 // it was truncated
	}
	if at == size {
		return parts, nil
	}
	parts = slices.Clone(parts)
	// A part no longer than the bytes after it is merged with them, so that a file has few parts.
	for n := len(parts); n > 0 && parts[n-1].Bytes <= size-at && parts[n-1].Bytes+size-at <= partBytes; n = len(parts) {
		at -= parts[n-1].Bytes
		parts = parts[:n-1]
	}
	for at < size {
		body := make([]byte, min(partBytes, size-at))
		if _, err := io.ReadFull(io.NewSectionReader(file, at, int64(len(body))), body); err != nil {
			return nil, err
		}
		p, err := m.putPart(ctx, body)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
		at += p.Bytes
	}
	return parts, nil
}

// keepBytes puts a whole file, unless it is unchanged, and returns its only part.
func (m *Mirror) keepBytes(ctx context.Context, body []byte, before []part) ([]part, error) {
	if len(before) == 1 && before[0].Bytes == int64(len(body)) && before[0].Sum == crc32.Checksum(body, castagnoli) {
		return before, nil
	}
	p, err := m.putPart(ctx, body)
	return []part{p}, err
}

func (m *Mirror) putPart(ctx context.Context, body []byte) (part, error) {
	m.object++
	p := part{Object: fmt.Sprintf("data/%09d-%09d", m.Epoch, m.object), Bytes: int64(len(body)),
		Sum: crc32.Checksum(body, castagnoli)}
	return p, m.Store.Put(ctx, p.Object, body)
}

// listedAfter is how long a store's listing may be stale.
const listedAfter = time.Minute

// Restore writes the files of the newest checkpoint to the paths that place returns, replacing existing files, and
// returns the folder given to Save. It returns "" if there is no checkpoint or Finish was called.
func (m *Mirror) Restore(ctx context.Context, place func(folder, name string) (path string, err error)) (folder string,
	err error) {
	for began := time.Now(); ; {
		folder, err = m.restore(ctx, place)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		// The checkpoint was deleted after a newer one was put. The store may not list the newer one yet.
		if err := m.Check(); err != nil {
			return "", err
		}
		if time.Since(began) >= listedAfter {
			err = fmt.Errorf("%w; start over with --fresh", err)
			break
		}
		if err := ratelimit.Wait(ctx, time.Second); err != nil {
			return "", err
		}
	}
	if err != nil {
		return "", fmt.Errorf("read the run in %s: %w", m.Store, err)
	}
	return folder, nil
}

// Unfinished reports whether there is, or may be, a checkpoint from which a load can be resumed.
func (m *Mirror) Unfinished(ctx context.Context) (bool, error) {
	_, c, err := m.newest(ctx)
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*UnfitError)) {
		return true, nil // damaged, or replaced by a checkpoint that is not listed yet
	}
	return c != nil, err
}

// newest returns the newest checkpoint and its name. The checkpoint is nil if there is none or Finish was called.
func (m *Mirror) newest(ctx context.Context) (newest string, c *checkpointFile, err error) {
	names, err := m.Store.List(ctx, "checkpoint.")
	if err != nil || len(names) == 0 {
		return "", nil, err
	}
	newest = slices.Max(names) // epochs and numbers have nine digits
	body, err := m.Store.Get(ctx, newest)
	if err != nil {
		return "", nil, err
	}
	c = new(checkpointFile)
	if err := progress.Decode(newest, body, mirrorVersion, c, progress.StartOver); err != nil {
		return "", nil, err
	}
	if c.Finished {
		c = nil
	}
	return newest, c, nil
}

func (m *Mirror) restore(ctx context.Context, place func(folder, name string) (string, error)) (string, error) {
	newest, c, err := m.newest(ctx)
	if c == nil || err != nil {
		return "", err
	}
	if c.Folder == "" || c.Folder != filepath.Base(c.Folder) || c.Folder == ".." {
		return "", progress.Unfitf("%s is damaged: it names the folder %q; start over with --fresh", newest, c.Folder)
	}
	for name, parts := range c.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return "", progress.Unfitf("%s is damaged: it names the file %q; start over with --fresh", newest, name)
		}
		path, err := place(c.Folder, name)
		if err == nil {
			err = m.restoreFile(ctx, path, parts)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	return c.Folder, nil
}

func (m *Mirror) restoreFile(ctx context.Context, path string, parts []part) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, atomicfile.Options{Perm: 0o600}, func(w io.Writer) error {
		for _, p := range parts {
			body, err := m.Store.Get(ctx, p.Object)
			if err == nil && (int64(len(body)) != p.Bytes || crc32.Checksum(body, castagnoli) != p.Sum) {
				err = progress.Unfitf("%s is damaged; start over with --fresh", p.Object)
			}
			if err == nil {
				_, err = w.Write(body)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
