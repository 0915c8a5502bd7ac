package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oci:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 4 {
		return errors.New("usage: SOURCE_DATE_EPOCH=SECONDS oci SOURCE LAYOUT VERSION ARCH=BINARY...")
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("read SOURCE_DATE_EPOCH, the time of all files: %w", err)
	}
	m := maker{source: args[0], time: time.Unix(seconds, 0).UTC()}
	dockerfile, err := os.ReadFile(filepath.Join(m.source, "Dockerfile"))
	if err != nil {
		return err
	}
	if m.stage, err = finalStage(string(dockerfile)); err != nil {
		return err
	}
	images := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arg := range args[3:] {
		arch, binary, _ := strings.Cut(arg, "=")
		image, err := m.image(arch, binary)
		if err != nil {
			return fmt.Errorf("build the image for linux/%s: %w", arch, err)
		}
		images = mutate.AppendManifests(images, mutate.IndexAddendum{Add: plain{image},
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	// The index is nested, as buildx writes it, because skopeo and crane take several entries in a layout for images.
	_, err = layout.Write(args[1], mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: images,
		Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": args[2]}}}))
	return err
}

// plain is an image that the index lists without an artifact type, as buildx does, because skopeo drops the type.
type plain struct{ v1.Image }

func (plain) ArtifactType() (string, error) { return "", nil }

type stage struct {
	config v1.Config
	copies []copying
}

// copying is a COPY instruction from paths in the first stage to a path in the image, with the owner there.
type copying struct {
	text     string
	from     []string
	to       string
	uid, gid int
}

// finalStage parses the instructions after "FROM scratch". An unknown one is an error: the image must be complete.
func finalStage(text string) (s stage, err error) {
	_, text, found := strings.Cut(text, "\nFROM scratch\n")
	if !found {
		return s, errors.New("read Dockerfile: it has no stage FROM scratch")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := s.add(line); err != nil {
			return s, fmt.Errorf("read %q of Dockerfile: %w", line, err)
		}
	}
	return s, nil
}

func (s *stage) add(line string) error {
	instruction, value, _ := strings.Cut(line, " ")
	if instruction == "ENTRYPOINT" {
		return json.Unmarshal([]byte(value), &s.config.Entrypoint)
	}
	if value == "" || strings.ContainsAny(value, `"'\$[`) {
		return errors.New("quotes, variables, lists and continued lines are not supported")
	}
	words := strings.Fields(value)
	switch instruction {
	case "COPY":
		return s.copy(line, words)
	case "ENV":
		s.config.Env = append(s.config.Env, words...)
	case "USER":
		s.config.User = value
	case "WORKDIR":
		s.config.WorkingDir = value
	case "VOLUME":
		s.config.Volumes = map[string]struct{}{value: {}}
	default:
		return errors.New("the instruction is not supported")
	}
	return nil
}

func (s *stage) copy(line string, words []string) error {
	c := copying{text: line}
	for ; len(words) > 0 && strings.HasPrefix(words[0], "--"); words = words[1:] {
		switch flag, value, _ := strings.Cut(words[0], "="); {
		case words[0] == "--from=build":
		case flag == "--chown":
			if _, err := fmt.Sscanf(value, "%d:%d", &c.uid, &c.gid); err != nil {
				return fmt.Errorf("want --chown=UID:GID: %w", err)
			}
		default:
			return fmt.Errorf("%s is not supported", words[0])
		}
	}
	if len(words) < 2 {
		return errors.New("want a source and a destination")
	}
	c.from, c.to = words[:len(words)-1], words[len(words)-1]
	s.copies = append(s.copies, c)
	return nil
}

type maker struct {
	source string // folder of the repository
	stage  stage
	time   time.Time
}

// image returns an image with one layer per COPY, like docker build.
func (m maker) image(arch, binary string) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: m.time}, Config: m.stage.config,
		RootFS: v1.RootFS{Type: "layers"},
	})
	for _, c := range m.stage.copies {
		if err != nil {
			return nil, err
		}
		var files []byte
		if files, err = m.files(c, binary); err != nil {
			return nil, fmt.Errorf("%s: %w", c.text, err)
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }
		var layer v1.Layer
		layer, err = tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
			tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: m.time}, CreatedBy: c.text}
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history})
	}
	return image, err
}

// files returns the tar archive of a COPY, with parent folders. As with BuildKit, --chown applies to all entries.
func (m maker) files(c copying, binary string) ([]byte, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	made := map[string]bool{}
	add := func(header tar.Header, data []byte) error {
		header.Size, header.Uid, header.Gid, header.ModTime = int64(len(data)), c.uid, c.gid, m.time
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	for _, from := range c.from {
		name := strings.TrimPrefix(c.to, "/")
		if strings.HasSuffix(name, "/") || name == "" {
			name += path.Base(from)
		}
		if from == emptyData {
			name += "/tmp/"
		}
		for i := range name {
			if folder := name[:i+1]; name[i] == '/' && !made[folder] {
				made[folder] = true
				if err := add(tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}, nil); err != nil {
					return nil, err
				}
			}
		}
		if from == emptyData {
			continue
		}
		mode, data, err := m.read(from, binary)
		if err == nil {
			err = add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, data)
		}
		if err != nil {
			return nil, err
		}
	}
	err := w.Close() // before the bytes are used, because Close completes the archive
	return archive.Bytes(), err
}

// emptyData is the folder created in the Dockerfile's first stage, with a subfolder tmp.
const emptyData = "/out/data"

// read returns the file at a path of the Dockerfile's first stage.
func (m maker) read(from, binary string) (mode int64, data []byte, err error) {
	if name, of := strings.CutPrefix(from, "/src/"); of {
		data, err = os.ReadFile(filepath.Join(m.source, name))
		return 0o644, data, err
	}
	switch from {
	case "/out/tsimport":
		data, err = os.ReadFile(binary)
		return 0o755, data, err
	case "/etc/ssl/certs/ca-certificates.crt":
		return 0o644, certificates(), nil
	}
	return 0, nil, fmt.Errorf("the content of %s is unknown", from)
}

// certificates returns Mozilla's certificates in the version in go.mod. Those of this machine may differ from others'
// and be private. Like Debian's file, it includes roots that are trusted only before a date.
func certificates() (all []byte) {
	for root := range bundle.Roots() {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
	}
	return all
}
