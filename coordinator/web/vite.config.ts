import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defaultClientConditions, type Plugin } from "vite";
import { defineConfig } from "vitest/config";

const here = fileURLToPath(new URL(".", import.meta.url));
const bundle = join(here, "bundle");
const pieces = join(here, "generated");

/** Fills and strokes of coordinator/assets/style.css. */
const COLORS = {
  white: { fill: "#fffdf8", stroke: "#2a2622", detail: "#2a2622" },
  black: { fill: "#3a3532", stroke: "#14110f", detail: "#d8d2c8" },
};

/** Makes a file of each piece of the game viewer's symbols: a style sheet cannot refer to symbols of a page. */
function pieceFiles(): void {
  const symbols = readFileSync(join(here, "../templates/pieces.svg"), "utf8");
  mkdirSync(pieces, { recursive: true });
  for (const [, name, content] of symbols.matchAll(/<symbol id="(\w+)"[^>]*>([\s\S]*?)<\/symbol>/g)) {
    for (const [color, { fill, stroke, detail }] of Object.entries(COLORS)) {
      const style = `.piece-line{fill:none;stroke:${detail}}.piece-mark{fill:${detail};stroke:none}.piece-edge{fill:none}`;
      writeFileSync(join(pieces, `${color}-${name}.svg`),
        `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 45 45"><style>${style}</style><g fill="${fill}"`
        + ` stroke="${stroke}" stroke-width="1.5" stroke-linejoin="round" stroke-linecap="round">${content}</g></svg>\n`);
    }
  }
}

/** What the bundle is made of, with the files that hold the licences. ONNX Runtime's package has none. */
const LICENSES = {
  "chessground": "node_modules/chessground/LICENSE",
  "chessops": "node_modules/chessops/LICENSE.txt",
  "@badrap/result": "node_modules/@badrap/result/LICENSE",
  "@noble/hashes": "node_modules/@noble/hashes/LICENSE",
  "ONNX Runtime": "licenses/onnxruntime.txt",
};

/** Adds a file with the licences of all parts. */
function licenses(): Plugin {
  return {
    name: "licenses",
    apply: "build",
    generateBundle() {
      const texts = Object.entries(LICENSES).map(([name, file]) => `${name}\n\n${readFileSync(join(here, file), "utf8").trim()}\n`);
      this.emitFile({ type: "asset", name: "licenses.txt", source: texts.join(`\n${"-".repeat(72)}\n\n`) });
    },
  };
}

/** Names of the bundle's files. */
function built(): string[] {
  return readdirSync(bundle).filter((name) => !name.startsWith("."));
}

/** Replaces each file by its compressed forms, which the coordinator embeds and serves as they are. */
function compress(): Plugin {
  return {
    name: "compress",
    apply: "build",
    buildStart() {
      for (const name of built()) rmSync(join(bundle, name));
    },
    closeBundle() {
      for (const name of built()) {
        const file = join(bundle, name);
        const bytes = readFileSync(file);
        const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24 };
        writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
        writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
        rmSync(file);
      }
    },
  };
}

pieceFiles();

export default defineConfig({
  base: "/assets/board/",
  plugins: [licenses(), compress()],
  // ONNX Runtime's threads load its module from a file of its own.
  resolve: { conditions: ["onnxruntime-web-use-extern-wasm", ...defaultClientConditions] },
  worker: { format: "es" },
  build: {
    outDir: bundle,
    emptyOutDir: false,
    assetsDir: "",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    target: "es2022",
    rollupOptions: {
      input: join(here, "src/main.ts"),
      output: {
        entryFileNames: "play-[hash].js",
        chunkFileNames: "[name]-[hash].js",
        assetFileNames: "[name]-[hash][extname]",
      },
    },
  },
  test: {
    include: ["tests/**/*.test.ts"],
    // For machines that are busy.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // The same WebAssembly in ONNX Runtime's build for Node.js.
    alias: { "onnxruntime-web/wasm": "onnxruntime-web" },
  },
});
