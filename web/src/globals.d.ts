/** Where the files are that pdf.js loads by itself. */
declare const PDFJS_FOLDER: string;
/** Where the build of Scalar is. */
declare const SCALAR_FOLDER: string;
