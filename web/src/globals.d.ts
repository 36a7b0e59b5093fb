/** Where the files are that pdf.js loads by itself. */
declare const PDFJS_FOLDER: string;
